"""The clock that is put into programs, as machine code for x86-64.

`clock_x86_64.s` is its source; a test assembles it where there is an assembler.
"""

from __future__ import annotations

from typing import Final

CODE: Final = bytes.fromhex(
    "57564883ec08ff15ec0f00004883c4085e5f85c0755e83ff0b7759488d0df60f0000ba210800000f"
    "a3fa7211488d0ded0f0000bad20000000fa3fa733748690600ca9a3b48034608482b0148f72dbe0f"
    "0000480facd014480301480305c70f000031d2b900ca9a3b48f7f14889064889560831c0c366662e"
    "0f1f8400000000004885ff741e574889fe31ffe870ffffff5f488b470831d2b9e803000048f7f148"
    "89470831c0c3662e0f1f840000000000574883ec104889e631ffe841ffffff488b04244883c4105f"
    "4885ff7403488907c3"
)
ENTRIES: Final = {"clock_gettime": 0x00, "gettimeofday": 0x80, "time": 0xB0}
"""Function of the vDSO -> where its replacement begins."""
ORIGINAL_AT: Final = 0xFF8
"""Where in the page of the code the address of the vDSO's own clock_gettime is put."""
PAGE: Final = 0x1000
"""The size of the page of the code; the numbers are on the next one."""
