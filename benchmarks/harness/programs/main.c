#include <stdint.h>
#include <string.h>
#include "model.h"
static model_state state;
static const SAMPLE samples[] = {VALUES};
static void say(uint32_t word) {
    char text[10];
    int i;
    for (i = 0; i < 8; i++)
        text[i] = "0123456789abcdef"[word >> (28 - 4 * i) & 15];
    text[8] = '\n';
    text[9] = 0;
    put(text);
}
static void all(void) {
    const SAMPLE *x = samples;
    uint32_t counted = 0, word;
    VALUE outputs[MODEL_OUTPUTS];
    int n, i;
    for (n = 0; n < SEQUENCES; n++) {
        model_start(&state);
        start_clock();
        for (i = 0; i < STEPS; i++, x += MODEL_CHANNELS) {
            model_step(&state, x);
            if (ANSWERS)
                model_output(&state, outputs);
        }
        counted += read_clock();
        model_output(&state, outputs);
        for (i = 0; i < MODEL_OUTPUTS; i++) {
            memcpy(&word, outputs + i, 4);
            say(word);
        }
    }
    say(counted);
}
