#include <stdint.h>
#define REGISTER(address) (*(volatile uint32_t *)(address))
static void call(int what, const void *with) { /* the emulator */
    register int r0 __asm__("r0") = what;
    register const void *r1 __asm__("r1") = with;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
}
static void put(const char *text) { call(4, text); }
static void start_clock(void) {
    REGISTER(0xe000e014) = 0xffffff;
    REGISTER(0xe000e018) = 0;
    REGISTER(0xe000e010) = 5;
}
static uint32_t read_clock(void) { return 0xffffff - REGISTER(0xe000e018); }
#include "main.c"
void reset(void) {
    REGISTER(0xe000ed88) |= 0xf << 20; /* floating point on */
    all();
    call(0x18, (void *)0x20026);
    for (;;);
}
extern char stack_end;
__attribute__((section(".vectors"), used)) const void *vectors[16] = {&stack_end, (void *)reset};
