/* Recurrences and sums over graphs for one kind of real and one instruction set: compiled with
 * -DAN_REAL=float|double, -DAN_REAL_BYTES=4|8 and -DAN_ENGINE=the name of the table below. */

#include "block.h"
#include "engine.h"
#include "gate.h"
#include "pool.h"
#include "resonator.h"

/* Whether the sizes of a call can be walked: a block or tile of 0 would never end. */
static int has_sizes(const an_call *c) {
    return c->steps > 0 && c->batch > 0 && c->inputs > 0 && c->hidden > 0 && c->layers > 0 &&
           c->sum_rows > 0 && c->block > 0 && c->block % c->sum_rows == 0 && c->tile > 0 &&
           c->skip >= 0 && c->keep >= AN_KEEP_NOTHING && c->keep <= AN_KEEP_END &&
           (c->keep == AN_KEEP_NOTHING || c->checkpoint > 0);
}

static int run(const an_call *call, int backward) {
    const int64_t number = sizeof models / sizeof *models;
    if (call->model < 0 || call->model >= number || !has_sizes(call)) return AN_BAD_CALL;
    const model *m = &models[call->model];
    if ((m->diagonal && !call->layer_dt) || (call->grid && !m->grid_walk) ||
        (call->keep == AN_KEEP_END && !call->grid))
        return AN_BAD_CALL;
    chain c;
    shape(&c, call, m, backward);
    arena count = {0};
    lay_out_weights(&c, &count);
    block widest = {.c = &c, .rows = smaller(call->block, call->batch)};
    arena count_block = {0};
    lay_out_block(&widest, &count_block);
    c.block_bytes = count_block.used;
    char *memory = an_workspace_take(count.used);
    if (!memory) return AN_NO_MEMORY;
    arena a = {.base = memory};
    lay_out_weights(&c, &a);
    const int64_t cells = call->steps * call->batch * (int64_t)sizeof(real);
    if (backward && call->grad_x) an_advise_huge(call->grad_x, cells * call->inputs);
    if (!backward && call->output) an_advise_huge(call->output, cells * c.H);
    if (!backward && call->keep)
        an_advise_huge(call->saved,
                       call->batch * (saved_state_bytes(&c) + saved_activation_bytes(&c)));
    an_parallel_flushing(c.blocks, (int)call->threads, backward ? backward_block : forward_block,
                         &c);
    if (backward && c.status == AN_OK) reduce_all(&c);
    an_workspace_give(memory);
    return c.status;
}

static int forward(const an_call *call) { return run(call, 0); }
static int backward(const an_call *call) { return run(call, 1); }

static int64_t node_results(const an_graph_call *c) { return c->nodes * c->features; }

static void neighbour_sum(const an_graph_call *call) {
    walk_graph(call, sum_rows, node_results(call));
}
static void gate(const an_graph_call *call) {
    walk_graph(call, gate_rows, call->single ? call->nodes : node_results(call));
}
static void gate_backward(const an_graph_call *call) {
    walk_graph(call, gate_back_rows, node_results(call));
}

static void elementary(int which, const void *from, void *to, int64_t n) {
    for (int64_t i = 0; i < n; i += LANES) {
        real in[LANES] = {0}, out[LANES];
        const int64_t here = smaller(LANES, n - i);
        copy(in, (const real *)from + i, here);
        const vec x = load(in);
        store(out, which == 0 ? tanh_of(x) : which == 1 ? sigmoid_of(x) : exp_of(x));
        copy((real *)to + i, out, here);
    }
}

const an_engine AN_ENGINE = {
    forward, backward, neighbour_sum, gate, gate_backward, run_resonators, elementary,
};
