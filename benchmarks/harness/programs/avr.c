#include <avr/interrupt.h>
#include <avr/io.h>
#include <avr/sleep.h>
static void put(const char *text) {
    for (; *text; text++) {
        while (!(UCSR0A & (1 << UDRE0)));
        UDR0 = *text;
    }
}
static void start_clock(void) { TCCR1B = 5; TCNT1 = 0; } /* one count in 1024 cycles */
static unsigned read_clock(void) { return TCNT1; }
#include "main.c"
int main(void) {
    all();
    cli();
    sleep_mode();
    return 0;
}
