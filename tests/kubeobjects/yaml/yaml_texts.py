"""Texts on which readers of YAML may differ: scalars in every form, and what is around them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from simclock import Rng

WORDS: Final = (
    *("", "~", "null", "Null", "NULL", "nULL", "true", "True", "TRUE", "tRUE", "false", "False"),
    *("FALSE", "yes", "Yes", "YES", "yEs", "no", "No", "NO", "on", "On", "ON", "off", "Off", "OFF"),
    *("y", "Y", "n", "N", "t", "f", "a", "a1", "word", "two words", "é", "😀", "none", "<<", "="),
    *("-", "+", ".", "-a", "+a", "1a", "0x", "0b", "0o", "-0x", "0x_", "0b_", "._1"),
)
NUMBERS: Final = (
    *("0", "-0", "+0", "1", "-1", "+5", "00", "007", "08", "09.5", "0644", "-0644", "+0644"),
    *("0o17", "0O17", "0o8", "-0o17", "0x1F", "0X1f", "-0x1f", "+0x10", "0xfg", "0b101", "0B101"),
    *("-0b101", "+0b1", "0b2", "1_000", "1__0", "_1", "1_", "0x_1", "0_7", "0b_1", "-_1", "1e3"),
    *("1E3", "1e+3", "1e-3", "1e", "e3", ".5", "-.5", "+.5", ".5e3", ".5_0", "1.", "1.e2", "1.5"),
    *("-2.50", "1.5e1", "1_0.5", "1.0", "30.0", "-0.0", "1e20", "1e21", "123456789012345678901"),
    *("1e-7", "1.2.3", "1e6", "123456.0", "1234567.0", "0.0001", "0.00001", "3.4e38", "1e39"),
    *("-1e39", "0.1", "16777217.0", "1e400", "-1e400", "1e-400", "9007199254740993"),
    *("9007199254740993.0", "9223372036854775807", "9223372036854775808", "-9223372036854775808"),
    *("-9223372036854775809", "18446744073709551615", "18446744073709551616"),
    *("+9223372036854775808", "0x7fffffffffffffff", "0xffffffffffffffff", "0x10000000000000000"),
    *("-0x8000000000000000", "-0x8000000000000001", "01777777777777777777777"),
    *("0b" + "1" * 64,),
    *("0b" + "1" * 65,),
    *("1" * 40, "0.3333333333333333333333333333333333333333"),
    *("9" * 400, "0.1e1_0", "1e1000000000", ".inf", "-.inf", "+.INF", ".Inf", ".iNF", ".nan"),
    *(".NaN", "-.nan", "inf", "nan", "0x1p-2", "12:30", "12:30:45", "1:60", "190:20:30.15"),
    *("2024-01-01", "2024-1-1", "2024-13-01", "2001-12-14t21:59:43.10-05:00"),
    *("2001-12-14 21:59:43.10 -5", "2001-12-14 21:59:43", "2001-12-15T02:59:43.1Z", "24-01-01"),
    *("1.2.3.4", "1,000", "5Gi", "100m", "1e3m", "1 2"),
)
TAGS: Final = ("str", "int", "float", "bool", "null", "timestamp", "binary", "merge", "seq", "own")
TAGGED: Final = (
    *("", "~", "yes", "5", "-0x1f", "08", "1.5", "1e3", ".inf", "2024-01-01", "a", "<<", "aGk="),
    *("18446744073709551615", "9007199254740993", "2001-12-15T02:59:43.1Z", "2024-02-31"),
)
STRUCTURES: Final = (
    *("# only a comment", "--- ", "---\n...\n", "...", "--- a", "--- |\n a\n", "a: 1\n---\nb: 2\n"),
    *("a: 1\n...\nb: [", "a: 1\n---\n[", "---\n---\na: 1", "%YAML 1.1\n---\na: 1", "a: 1\n... x"),
    *("%YAML 1.2\n---\na: 1", "%TAG !e! tag:e,2000:\n---\na: !e!x 1", "%X y\n---\na: 1"),
    *("\ufeffa: 1", "a: \ufeff", "a: \x00", "a: \x07", "a: \x7f", "a: \x85b", "a: \u2028b"),
    *("a:\t1", "\ta: 1", "a: 1\t# c", "a:\n\t- b", "a:\n \t b: 1", "a: b\tc", "- \ta", "[a,\tb]"),
    *("a: b: c", "a: 'b': c", "a: [b", "a: {b", "a: ]", "a: }", "a: [b,,c]", "a: [b,]", "a: {b,}"),
    *("a: [,b]", "{a: b:c}", "[a:b]", "[a: b]", "[a: b, c]", '{"a":b}', '"a":b', '["a":b]'),
    *("{a, b: c}", "{a:}", "{a: }", "{: a}", "[: a]", "a: [b]c", "a: 'b'c", 'a: "b"c'),
    *("- - a\n  - b", "-", "- ", "-\n-", "- a\n- b\n", "a:\n- b\n- c", "a:\n  - b\n - c", "a: - b"),
    *("a:\n b\n c", "a:\n  b: 1\n c: 2", " a: 1\nb: 2", "a: 1\n b: 2", "a: b\n c", "a\nb: c"),
    *("a: b #c", "a: b#c", "a: @b", "a: `b", "a: %b", "a: !b", "a: &b", "a: *b", "a: |", "a: >"),
    *("a: ,b", "a: ?b", "a: -", "a: &x 1\nb: *x", "&x a: 1\nb: *x", "{&k a: 1, b: *k}"),
    *("&k a: 1\n*k : 2", "a: &x\nb: *x", "a: &x [*x]", "&x {a: *x}"),
    *("a: &x {b: 1}\nc: *x\nd: &x 2\ne: *x", "a: *x\nb: &x 1", "&a &b c", "a: &x !!str 5\nb: *x"),
    *("a: !!str &x 5\nb: *x", "a: & b", "a: *", "- &a-b.c 1\n- *a-b.c", "? a\n: b", "? [a]\n: b"),
    *("? {a: b}\n: c", "? &l [a]\n: b", "? a", "? a\n? b", "[a]: b", "? |\n a\n: b", "{[a]: b}"),
    *("&l [a]: b\n", "a: &l [b]\n*l : c", "? - a\n: b", "? !!str 5\n: b", "{? a : b}"),
    *("b: &b {x: 1, z: 2}\nm:\n  <<: *b\n  z: 3", "b: &b {x: 1, z: 2}\nm:\n  z: 3\n  <<: *b"),
    *("b: &b {x: 1}\nm:\n  z: 3\n  <<: [{x: 5}, *b]", "m: {<<: {a: 1}, <<: {a: 2}}", "<<: {a: 1}"),
    *("m: {<<: 1}", "m: {<<: ~}", "m: {<<: []}", "m: {<<: [1]}", "m: {'<<': {a: 1}}"),
    *("m: {<<: [[{a: 1}]]}", "l: &l [{a: 1}]\nm: {<<: *l}", "l: &l 1\nm: {<<: [*l]}"),
    *("m: {!!merge x: {a: 1}}", "[<<, a]", "m: {!!merge <<: {a: 1}}", "m: {!!str <<: {a: 1}}"),
    *("m: {! <<: {a: 1}}", "m: {!!merge '<<': {a: 1}}", "a: &k <<\nm: {*k : {b: 1}}"),
    *("b: &b {<<: {x: 1}, y: 2}\nm: {<<: *b, x: 3}", "m: {<<: {1: a}}", "a: 1\na: 2"),
    *("{a: 1, a: 2, a: 3}", "a: {b: 1}\na: {c: 2}", "a: 1\n'a': 2", "m: {a: {b: 1, b: 2}}"),
    *("a: |\n  x\n  y\n", "a: |-\n  x\n", "a: |+\n  x\n\n", "a: >\n  x\n  y\n\n  z\n"),
    *("a: >-\n  x\n   y\n", "a: |2\n   x\n", "a: |\n\n  x\n", "a: |\nb: 1", "a: |0\n x"),
    *("a: |9\n x", "a: |\n x\n  y\nb: 1", "a: >+\n x\n\n\nb: 1", "a: | # c\n x", "a: |x\n x"),
    *("a: |\n\tx", "a: |\n  x\n y", "- |\n x\n- >\n y", "a: 'it''s'", "a: 'x\n  y'"),
    *("a: 'x\n\n  y'", "a: 'x", 'a: "x', 'a: "x\n  y"', 'a: "x\\\n  y"'),
    *('a: "\\n\\t\\0\\x41\\u00e9\\U0001f600"', 'a: "\\ud83d\\ude00"', 'a: "\\ud83d"', 'a: "\\/"'),
    *('a: "\\q"', 'a: "\\x4"', 'a: "\\u12"', 'a: "\\U00110000"'),
    *('a: "\\e\\a\\b\\v\\f\\r\\N\\_\\L\\P\\ "', 'a: "\\\t"', "a: x\n  y\n  z", "a: x\n\n  y"),
    *("a: http://x:80/y#z", "a: x # y", "a: x, y", "a: [x y, z]", "a: -x", "a: !!str"),
    *("a: !!str\nb: 1", "a: !<tag:yaml.org,2002:str> 5", "a: !<x> 5", "a: !!x [1]", "a: !! 5"),
    *("a: !e!x 5", "a: !!set {b}", "a: !!omap [b: 1]", "a: !!map [b]", "a: !!null [b]"),
    *("!!str a: 1", "!!int 'a': 1", "!!str [a]", "! [a]", "a: !!int '5'", 'a: !!float "1e3"'),
    *("a: !!binary 'aGk='", "a: !!binary |\n  aGFs\n  bG8=\n", "a: !!binary /w=="),
    *("a: !!binary '*'", "a: !!binary aGk", "!!binary aGk=: 1"),
    *("a" * 200 + ": 1",),
    *("a" * 1100 + ": 1",),
    *('{"' + "a" * 1100 + '": 1}',),
    *("a: " + "b" * 3000,),
    *("{" * 20 + "a: b" + "}" * 20,),
    *("[" * 90 + "]" * 90,),
    *("- " * 90 + "a",),
    *("a: a: a: ", "a: 1\r\nb: 2\r\n", "a: 1\rb: 2", "a: |\r\n  x\r\n  y\r\n", "a: b ", "a:  b"),
    *("a :b", "a : b", "a: b\n\n\n", "{a?: 1}", "{?a: 1}", "{a: ?b}", "[?a]", "[a?]", "{? a}"),
    *("[-, -a]", "[- a]", "{-: 1}", "{a: -}", "[--- a]", "a: 'b' 'c'", "a: [b] [c]", "a: 1 b: 2"),
    *("[a, b: c, {d: e}]", "{a: [b, {c: d}], e: f}", "a: {b: 1\n}", "a: [\nb\n]"),
    *("a:\n  - b: 1\n    c: 2\n  -\n    d: 3", "a:\n  ? b\n  : c", "-a", "-a: b", "- a: b\n c: d"),
    *(":", ":a", "::", ": a"),
)
PIECES: Final = (
    *("a", "b", "1", "0x1f", "yes", "~", "'x'", '"y"', "- ", "-", ": ", ":", "? ", ", ", "[", "]"),
    *("{", "}", "\n", "\n  ", "\n- ", "\n    ", " ", "\t", "# c", "&a ", "*a", "!!str ", "!t "),
    *("|\n", ">\n", "a: ", "b: ", "c: ", "<<: ", "---\n", "...\n", "a: 1\n", "- b\n", "'", '"'),
    *("%", "@", "\\n", "2024-01-01"),
)


ALIASES: Final = f"a: &a [{'x,' * 300}]\nb: [{'*a,' * 300}]"
"""More than 99 % of it comes of aliases."""


def texts(random: int = 700) -> Iterator[str]:
    """All of them, none twice: words and numbers as value, key, item and quoted, with tags, the
    structures, and `random` texts of pieces."""
    dice = Rng(1).stream("yaml")
    unique = dict.fromkeys((*STRUCTURES, ALIASES))
    for word in (*WORDS, *NUMBERS):
        unique |= dict.fromkeys((f"a: {word}", f"{word}: a", f"[{word}, a]", f"- '{word}'"))
    for word in TAGGED:
        unique |= dict.fromkeys(f"a: !!{tag} {word}" for tag in TAGS)
        unique |= dict.fromkeys((f"a: ! {word}", f"a: !int {word}", f"a: !!int '{word}'"))
        unique |= dict.fromkeys((f"!!float {word}: a", f"!!int {word}: a", f'- "{word}"'))
    count = len(unique) + random
    while len(unique) < count:
        parts = dice.randint(2, 9)
        unique["".join(dice.choice(PIECES) for _ in range(parts))] = None
    yield from unique
