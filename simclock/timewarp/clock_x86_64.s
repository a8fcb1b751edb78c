# The clock of a program in warped time, x86-64. clock_x86_64.py holds what this assembles to:
#   as -o clock.o clock_x86_64.s && objcopy -O binary -j .text clock.o clock.bin
#
# It is mapped at the start of a page. The next page holds the numbers of the time, read-only
# (simclock/timewarp/pages.py), the last 8 bytes of this page the address of the vDSO's own clock_gettime.
# A clock then is   start + ((real - start) * rate >> 20) + jumped,   in nanoseconds.
.intel_syntax noprefix
.text
.set RATE,       0x1010
.set START_WALL, 0x1018
.set START_MONO, 0x1020
.set JUMPED,     0x1028
.set REAL_CLOCK, 0xff8

page:
clock_gettime:                          # edi: which clock, rsi: struct timespec *
    push    rdi
    push    rsi
    sub     rsp, 8
    call    [rip + page + REAL_CLOCK]
    add     rsp, 8
    pop     rsi
    pop     rdi
    test    eax, eax
    jnz     told
    cmp     edi, 11
    ja      told
    lea     rcx, [rip + page + START_WALL]
    mov     edx, 0x821                  # REALTIME 0, REALTIME_COARSE 5, TAI 11
    bt      edx, edi
    jc      warped
    lea     rcx, [rip + page + START_MONO]
    mov     edx, 0xd2                   # MONOTONIC 1, _RAW 4, _COARSE 6, BOOTTIME 7
    bt      edx, edi
    jnc     told                        # time used by processes and threads stays what it is
warped:
    imul    rax, [rsi], 1000000000
    add     rax, [rsi + 8]
    sub     rax, [rcx]
    imul    qword ptr [rip + page + RATE]
    shrd    rax, rdx, 20
    add     rax, [rcx]
    add     rax, [rip + page + JUMPED]
    xor     edx, edx
    mov     ecx, 1000000000
    div     rcx
    mov     [rsi], rax
    mov     [rsi + 8], rdx
    xor     eax, eax
told:
    ret

    .balign 16
gettimeofday:                           # rdi: struct timeval * or 0
    test    rdi, rdi
    jz      none
    push    rdi
    mov     rsi, rdi
    xor     edi, edi
    call    clock_gettime
    pop     rdi
    mov     rax, [rdi + 8]              # nanoseconds, to be microseconds
    xor     edx, edx
    mov     ecx, 1000
    div     rcx
    mov     [rdi + 8], rax
none:
    xor     eax, eax
    ret

    .balign 16
time:                                   # rdi: time_t * or 0
    push    rdi
    sub     rsp, 16
    mov     rsi, rsp
    xor     edi, edi
    call    clock_gettime
    mov     rax, [rsp]
    add     rsp, 16
    pop     rdi
    test    rdi, rdi
    jz      unstored
    mov     [rdi], rax
unstored:
    ret
