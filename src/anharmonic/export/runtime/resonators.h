/* Resonators: of their 2 K responses (positions, then velocities) features are pooled, which a
 * linear model reads. */

#include "scale.h"
#if RUNNING_SCALE
/* By mean and deviation of the samples so far. */
static model_real scaled_so_far(model_state *s, model_real x, int i) {
    model_real before, size, deviation;
    /* From the first sample: float holds the sums of values far from 0 badly. */
    if (s->steps == 0) s->first[i] = x;
    x -= s->first[i];
    before = x - s->mean[i];
    s->mean[i] += before / (model_real)(s->steps + 1);
    s->square_sum[i] += before * (x - s->mean[i]);
    size = s->first[i] + s->mean[i];
    if (size < 0) size = -size;
    deviation = MODEL_SQRT(s->square_sum[i] / (model_real)(s->steps + 1));
    if (!(deviation > D(1e-8) * size)) deviation = 1;
    return (x - s->mean[i]) / deviation;
}

#endif
/* Takes one sample of response i. */
static void pool(model_state *s, int i, model_real now) {
#if POOL_SHARE
    for (int b = 0; b < MODEL_BIASES; b++)
        s->above[i * MODEL_BIASES + b] += now > level[i * MODEL_BIASES + b];
#endif
#if POOL_EXCESS
    for (int b = 0; b < MODEL_BIASES; b++)
        if (now > level[i * MODEL_BIASES + b])
            s->excess[i * MODEL_BIASES + b] += now - level[i * MODEL_BIASES + b];
#endif
#if RUNS
    for (int b = 0; b < MODEL_RUNS; b++) {
        int at = i * MODEL_RUNS + b, is_over = now > level[i * MODEL_BIASES + b];
        long run = s->run[at];
#if POOL_CROSSINGS
        s->crossings[at] += is_over && run < 0;
#endif
        if (is_over)
            run = run > 0 ? run + 1 : 1;
        else
            run = run < 0 ? run - 1 : -1;
        s->run[at] = run;
#if LONGEST
        if (run > s->longest[at]) s->longest[at] = run;
#endif
#if POOL_STRETCHES
        if (-run > s->longest_below[at]) s->longest_below[at] = -run;
#endif
    }
#endif
#if POOL_POSITION
    if (now > level[i * MODEL_BIASES]) {
        s->count[i]++;
        s->position[i] += (model_real)s->steps;
    }
#endif
#if POOL_LARGEST
    if (s->steps == 0 || now > s->largest[i]) s->largest[i] = now;
#endif
#if POOL_SMALLEST
    if (s->steps == 0 || now < s->smallest[i]) s->smallest[i] = now;
#endif
#if POOL_RMS
    s->square[i] += now * now;
#endif
#if !POOLS
    (void)s;
    (void)i;
    (void)now;
#endif
}

#if POOL_COMPETITION
/* Counts which responses of a group, every MODEL_GROUPS-th before `end`, are its largest and its
 * smallest. */
static void compete(model_state *s, int first, int end) {
    model_real scaled[COMPETITORS], high = 0, low = 0;
    int members = 0;
    for (int i = first; i < end; i += MODEL_GROUPS, members++) {
        model_real now = s->response[i] * response_scale[i];
        scaled[members] = now;
        if (i == first || now > high) high = now;
        if (i == first || now < low) low = now;
    }
    for (int m = 0; m < members; m++) {
        s->most[first + m * MODEL_GROUPS] += scaled[m] >= high;
        s->least[first + m * MODEL_GROUPS] += scaled[m] <= low;
    }
}

/* In two blocks of groups, the second of which may be shorter. */
static void compete_all(model_state *s) {
    int block = COMPETITORS * MODEL_GROUPS;
    for (int kind = 0; kind < 2; kind++)
        for (int start = 0; start < MODEL_OSCILLATORS; start += block)
            for (int g = 0; g < MODEL_GROUPS; g++) {
                int end = start + block < MODEL_OSCILLATORS ? start + block : MODEL_OSCILLATORS;
                compete(s, kind * MODEL_OSCILLATORS + start + g, kind * MODEL_OSCILLATORS + end);
            }
}

#endif
/* Adds a feature times its weights; where the next weights stand. */
static const MODEL_FLASH model_real *take(model_real value, const MODEL_FLASH model_real *w,
                                          model_real *outputs) {
    for (int o = 0; o < MODEL_OUTPUTS; o++) outputs[o] += value * *w++;
    return w;
}

void model_start(model_state *s) {
    static const model_state zero;
    *s = zero;
}

void model_step(model_state *s, const model_real x[MODEL_CHANNELS]) {
    model_real read[2 * MODEL_CHANNELS];
    for (int i = 0; i < MODEL_CHANNELS; i++) {
#if RUNNING_SCALE
        read[i] = scaled_so_far(s, x[i], i);
#else
        read[i] = scaled(x[i], i);
#endif
        read[MODEL_CHANNELS + i] = s->steps ? read[i] - s->before[i] : 0;
        s->before[i] = read[i];
    }
    for (int i = 0, j = 0; i < MODEL_OSCILLATORS; i++) {
        model_real y = s->response[i], z = s->response[MODEL_OSCILLATORS + i], u = 0, e;
        for (; j < reads_end[i]; j++) u += reads[j] < 0 ? -read[-reads[j] - 1] : read[reads[j]];
        e = u - y;
        y += step_a[i] * e + step_b[i] * z;
        z += step_b[i] * e - step_c[i] * z;
        s->response[i] = y;
        s->response[MODEL_OSCILLATORS + i] = z;
        pool(s, i, y);
        pool(s, MODEL_OSCILLATORS + i, z);
    }
#if POOL_COMPETITION
    compete_all(s);
#endif
    s->steps++;
}

void model_output(const model_state *s, model_real outputs[MODEL_OUTPUTS]) {
    const MODEL_FLASH model_real *w = readout;
#if AVERAGES
    model_real n = (model_real)(s->steps ? s->steps : 1);
#endif
    /* Pools that compare lose a NaN, but the responses keep it. */
    model_real valid = 0;
    for (int i = 0; i < 2 * MODEL_OSCILLATORS; i++) valid += 0 * s->response[i];
    for (int i = 0; i < MODEL_OUTPUTS; i++) outputs[i] = readout_bias[i] + valid;
#if POOL_SHARE
    for (int i = 0; i < 2 * MODEL_OSCILLATORS * MODEL_BIASES; i++)
        w = take(R(s->above[i]) / n, w, outputs);
#endif
#if POOL_EXCESS
    for (int i = 0; i < 2 * MODEL_OSCILLATORS * MODEL_BIASES; i++)
        w = take(s->excess[i] / n, w, outputs);
#endif
#if POOL_RUN
    for (int i = 0; i < 2 * MODEL_OSCILLATORS; i++)
        w = take(R(s->longest[i * MODEL_RUNS]) / n, w, outputs);
#endif
#if POOL_STRETCHES
    for (int i = 0; i < 2 * MODEL_OSCILLATORS; i++) {
        for (int b = 0; b < MODEL_RUNS; b++)
            w = take(R(s->longest[i * MODEL_RUNS + b]) / n, w, outputs);
        for (int b = 0; b < MODEL_RUNS; b++)
            w = take(R(s->longest_below[i * MODEL_RUNS + b]) / n, w, outputs);
    }
#endif
#if POOL_CROSSINGS
    for (int i = 0; i < 2 * MODEL_OSCILLATORS * MODEL_RUNS; i++)
        w = take(R(s->crossings[i]) / n, w, outputs);
#endif
#if POOL_POSITION
    for (int i = 0; i < 2 * MODEL_OSCILLATORS; i++)
        if (i % MODEL_OSCILLATORS % 2 == 0)
            w = take(s->count[i] ? s->position[i] / (R(s->count[i]) * n) : -1, w, outputs);
#endif
#if POOL_LARGEST
    for (int i = 0; i < 2 * MODEL_OSCILLATORS; i++) w = take(s->largest[i], w, outputs);
#endif
#if POOL_SMALLEST
    for (int i = 0; i < 2 * MODEL_OSCILLATORS; i++) w = take(s->smallest[i], w, outputs);
#endif
#if POOL_RMS
    for (int i = 0; i < 2 * MODEL_OSCILLATORS; i++)
        w = take(MODEL_SQRT(s->square[i] / n), w, outputs);
#endif
#if POOL_COMPETITION
    for (int i = 0; i < 2 * MODEL_OSCILLATORS; i++) {
        w = take(R(s->most[i]) / n, w, outputs);
        w = take(R(s->least[i]) / n, w, outputs);
    }
#endif
#if POOL_END
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < SLOW; j++)
            w = take(s->response[i * MODEL_OSCILLATORS + slow[j]], w, outputs);
#endif
#if POOL_LENGTH
    for (int i = 0; i < LENGTHS; i++) {
        model_real gap = (n - length[i]) / length_width[i], size = gap < 0 ? -gap : gap;
        w = take(i % 2 ? 1 / (1 + gap * gap) : gap / (1 + size), w, outputs);
    }
#endif
}
