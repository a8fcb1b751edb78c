"""What scripts print and end with in a fake container, beside what busybox 1.35 does with them.

What the fake cannot do it says; it never answers another question than the one that was asked.
"""

from __future__ import annotations

import pytest

from fakecri.fakesh import PROGRAMS, Invocation
from fakecri.process.pipes import MOST_COLLECTED_BYTES, Collected, filled

pytestmark = pytest.mark.virtual_time


async def run(script: str, stdin: bytes = b"") -> tuple[int, bytes, bytes]:
    """Exit code, output and errors of a script in a container of an image alone."""
    out, err = Collected(), Collected()
    one = Invocation(
        command=(),
        stdin=filled(stdin),
        stdout=out,
        stderr=err,
        programs=PROGRAMS,
        env={"HOME": "/root", "PATH": "/bin"},
        cwd="/tmp",
    )
    code = await one.run("sh", "-c", script)
    return code, bytes(out.data), bytes(err.data)


SAME = [
    # printf and echo
    ("printf '%-s|%5s|%-3s|%05d|%x|%.2s|' a b c 3 255 abc", "a|    b|c  |00003|ff|ab|"),
    (r"printf '\101\x42%b|%s\n' 'a\tb' 'a\tb'", "ABa\tb|a\\tb\n"),
    (r"printf '%d %c\n' 0x10 de", "16 d\n"),
    (r"echo -e 'a\tb\x41\0102ä\x'", "a\tbABä\\x\n"),
    (r"echo -e 'a\cb'; echo z", "az\n"),
    # the shell
    ("break; echo on", "on\n"),
    ("for i in 1 2; do for j in a b; do break 5; done; echo no; done; echo end", "end\n"),
    ("$(exit 3); echo $?", "3\n"),
    ("false; x='$(a)'; echo $?", "0\n"),
    ("X=1 cd /; echo ${X-unset} ${1-none}", "unset none\n"),
    ("echo ~ ~/a a~ '~'", "/root /root/a a~ ~\n"),
    ("case 5 in [[:digit:]]) echo digit;; esac", "digit\n"),
    ("set -euo pipefail; echo $#; (false | true) || echo failed", "0\nfailed\n"),
    ("set -o pipefail; false | true; echo $?", "1\n"),
    ("printf 'x=3; return 4; x=5' >f; . ./f; echo $? $x", "4 3\n"),
    ("echo a::b:c >f; IFS=: read x y z <f; echo \"$x-$y-$z-$IFS-\"", "a--b:c- \t\n-\n"),
    ("echo '  a b ' >f; while IFS= read -r l; do echo \"[$l]\"; done <f", "[  a b ]\n"),
    # here-documents and [[
    ("x=1; cat <<EOF\na $x \"b\" 'c' $(echo d) \\$x `echo \"e\"` \\\"\nEOF\necho end",
     "a 1 \"b\" 'c' d $x e \\\"\nend\n"),
    ("x=1; cat <<'EOF'\n$x it's \\$(\nEOF\n", "$x it's \\$(\n"),
    ("if true; then\n\tcat <<-E\n\t\ta\n\tE\nfi", "a\n"),
    ("cat <<A; cat <<B\n1\nA\n2\nB\n", "1\n2\n"),
    ("cat <<E | tr a b >f && cat f\naa\nE\n", "bb\n"),
    ("while read l; do echo \"[$l]\"; done <<E\n1\n2\nE\n", "[1]\n[2]\n"),
    ("[[ abc == a* && 1 ]] && [[ a = b || abc != b* ]] || echo no", ""),
    ("x='a b'; [[ \"$x\" = 'a b' ]] && [[ -n ab ]] && [[ abc == a?c ]] && echo yes", "yes\n"),
    # programs that change lines
    (r"echo a-b-c | sed 's/-/+/'; echo a-b | sed -E 's|(.)-(.)|\2&\1|g'", "a+b-c\nba-ba\n"),
    ("seq 5 | sed -n '2p;$p'; seq 5 | sed '/[24]/d' | sed 2q; seq 3 | sed -e 1d -e 's/3/&&/'",
     "2\n5\n1\n3\n2\n33\n"),
    (r"echo 'a b' >f; sed -i 's/a/\t\//; s/B/x/I' f; cat f", "\t/ x\n"),
    ("printf '1\\n1\\n2\\n' >f; uniq -c f; uniq -d f; uniq -u f; tac f | tr -d '\\n'; echo a1 | rev",  # noqa: E501
     "      2 1\n      1 2\n1\n2\n2111a\n"),
    ("echo hi | md5sum; echo hi >f; sha256sum f | head -c 8; echo hi | base64; echo aGkK | base64 -d",  # noqa: E501
     "764efa883dda1e11db47671c4a3bbd9e  -\n98ea6e4faGkK\nhi\n"),
    # programs that tell of places and words
    ("mkdir -p a/b; touch a/c a/b/d; find a -type f -name 'd*'; find a -maxdepth 0; find no || echo no",  # noqa: E501
     "a/b/d\na\nno\n"),
    ("printf abc >f; stat -c '%n %s %F' f; cd /; realpath tmp/../f", "f 3 regular file\n/f\n"),
    (r"expr 1 + 2; expr 7 / 2; expr abc : 'a\(.*\)'; expr 1 = 2; echo $?; expr length abcd; expr 3 \> 2",  # noqa: E501
     "3\n3\nbc\n0\n1\n4\n1\n"),
    ("d=$(mktemp -d); f=$(mktemp $d/xXXXXXX); [ -d $d ] && [ -f $f ] && echo a1 | egrep 'a|x'", "a1\n"),  # noqa: E501
    # programs
    ("printenv HOME; printenv NO; echo $?", "/root\n1\n"),
    ("env A=1 sh -c 'echo $A'; env -i A=2 env; env -u HOME env | grep -c HOME", "1\nA=2\n0\n"),
    ("seq 5 | tail -n +4; seq 5 | tail -c 4; seq 5 | tail -1", "4\n5\n4\n5\n5\n"),
    ("seq 5 | head -n -4; echo hello | head -c 2; seq 9 | head -n 0", "1\nhe"),
    ("seq 5 | grep -n 3; echo aXb | grep -o '[[:upper:]]'", "3:3\nX\n"),
    ("echo ab | grep -x a; echo ab | grep -w a; echo $?", "1\n"),
    (r"echo 'a|b' | grep 'a\|c'; echo 'f(x)' | grep 'f('", "a|b\nf(x)\n"),
    ("echo aa | grep -E '^(a|b)+$'", "aa\n"),
]  # fmt: skip


@pytest.mark.parametrize(("script", "printed"), SAME, ids=range(len(SAME)))
async def test_scripts_do_what_they_do_elsewhere_CRI_111(script: str, printed: str) -> None:
    assert (await run(script))[1].decode() == printed


async def test_a_variable_that_was_never_set_ends_a_strict_script() -> None:
    seen = await run("set -u; echo ${x:-d}; echo $nothere; echo no")
    assert seen == (2, b"d\n", b"sh: nothere: parameter not set\n")


@pytest.mark.parametrize(
    "script",
    ["grep -l a /etc/passwd", "sort -k 2 /etc/passwd", "wc -L /etc/passwd", "date -d @0",
     "head -z /etc/passwd", "env -0", "printf '%d' a", "cut -d: -f0 /etc/passwd"],
)  # fmt: skip
async def test_what_a_program_cannot_do_it_says(script: str) -> None:
    code, out, err = await run(script)
    assert code in (1, 2)
    assert out == b""
    assert err.count(b"\n") == 1


NINES = "9" * 5000


@pytest.mark.parametrize(
    "script",
    [f"exit {NINES}", f"break {NINES}", f"shift {NINES}", f"echo ${{{NINES}}}", f"kill -{NINES} 9",
     f"seq {NINES}", f"head -n {NINES} /etc/passwd", f"printf '%{NINES}s'", f"cut -f {NINES} f",
     f"sleep {NINES} & kill %{NINES}", f"echo $(({NINES}))", f"test 1 -eq {NINES}",
     "rm -rf /; mkdir -p /a/b", "rmdir /proc /", "grep '[[:digit:]' /etc/passwd", r"echo -e '\u1'"],
)  # fmt: skip
async def test_no_word_of_a_script_is_a_mistake_of_the_fake(script: str) -> None:
    assert (await run(script))[0] in range(256)


@pytest.mark.parametrize("script", ["read x; echo ${#x}", "head -n 1 | wc -c", "sh"])
async def test_a_line_may_be_long(script: str) -> None:
    stdin = b": " + b"a" * 300_000 + b"\necho end\n"
    assert (await run(script, stdin))[0] == 0


@pytest.mark.parametrize("script", ["seq 1 9999999999", "printf '%99999999999s'"])
async def test_who_has_much_to_say_takes_no_more_memory_CRI_114(script: str) -> None:
    code, out, _ = await run(f"timed() {{ {script} & sleep 3; }}; timed")
    assert code == 0
    assert len(out) <= MOST_COLLECTED_BYTES
