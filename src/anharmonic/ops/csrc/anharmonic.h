/* The interface of the library: recurrences over whole sequences and sums over the neighbours in a
 * graph, forward and backward, on raw pointers. No PyTorch and no Python header is needed to build
 * or to call it.
 *
 * An an_call runs a stack of layers over a batch of sequences in one direction. All arrays hold
 * reals of one kind (float or double, `real_bytes`); features lie next to each other, the strides
 * of the other axes are given in elements. Whatever is NULL is not given, or not wanted.
 */
#ifndef ANHARMONIC_H
#define ANHARMONIC_H

#include <stdint.h>

enum an_model {
    AN_CORNN_EXPLICIT = 0,
    AN_CORNN_IMPLICIT = 1,
    AN_UNICORNN = 2,
    AN_LEM = 3,
    AN_LEM_CLIPPED = 4,
    AN_LEM_SINGLE_SCALE = 5
};

enum an_status {
    AN_OK = 0,
    AN_NO_MEMORY = 1,
    AN_GRID_OVERFLOW = 2, /* a state left the fixed-point grid */
    AN_BAD_CALL = 3
};

/* What is kept between forward and backward (see kept.h for its layout). */
enum an_keep {
    AN_KEEP_NOTHING = 0,     /* inference */
    AN_KEEP_ALL = 1,         /* states every `checkpoint` = tile steps, dense: all activations */
    AN_KEEP_CHECKPOINTS = 2, /* states every `checkpoint` steps */
    AN_KEEP_END = 3          /* the end state on the grid (AN_UNICORNN with `grid`) */
};

/* Weights of a layer, in this order; matrices are row-major, [rows, columns]:
 *   coRNN     V [H, F], W [H, H], Wz [H, H], b [H]
 *   UnICORNN  V [H, F], w [H], b [H], c [H], skip [H, F']
 *   LEM       V [4H, F] (gate of z, gate of y, z, y), W [3H, H], Wy [H, H], b [4H]
 *   LEM with one scale  V [2H, F], W [H, H], Wy [H, H], b [2H]
 */
#define AN_WEIGHTS 5

typedef struct {
    int64_t model, real_bytes, threads;
    int64_t bfloat16;                             /* round the operands of products of floats */
    int64_t steps, batch, inputs, hidden, layers; /* T, B, F, H, L */
    int64_t skip;     /* S: layer l >= S also reads level l - S; 0: none */
    int64_t block;    /* batch rows that walk together */
    int64_t sum_rows; /* of these, rows whose weight gradients are summed together */
    int64_t tile;     /* steps that are processed together */
    int64_t keep, checkpoint, grid;
    double dt, frequency, damping, gate_floor;

    const void *x; /* [T, B, F] */
    int64_t x_time, x_batch;
    const void *const *weights; /* [L][AN_WEIGHTS] */
    const double *layer_dt;     /* [L] largest step of each layer (AN_UNICORNN), or NULL */
    const void *y0, *z0;        /* [L, B, H] contiguous */
    const void *elapsed;        /* [T, B] contiguous, or NULL */
    const int64_t *lengths;     /* [B], or NULL */
    const void *const *masks;   /* [L - 1] of [B, H] contiguous, or NULL */

    void *output; /* [T, B, H], or NULL */
    int64_t output_time, output_batch;
    void *y_n, *z_n; /* [L, B, H] contiguous */
    void *saved;     /* what is kept */

    /* backward only */
    const void *grad_output; /* [T, B, H], or NULL */
    int64_t grad_output_time, grad_output_batch;
    const void *grad_y_n, *grad_z_n; /* [L, B, H] contiguous, or NULL */
    void *grad_x;                    /* [T, B, F], or NULL */
    int64_t grad_x_time, grad_x_batch;
    void *const *grad_weights; /* [L][AN_WEIGHTS], as weights */
    void *grad_y0, *grad_z0;   /* [L, B, H] contiguous, or NULL */
    void *grad_elapsed;        /* [T, B] contiguous, or NULL */
    double *grad_scalars;      /* dt, frequency, damping (coRNN), or NULL */
} an_call;

/* Sums over the neighbours of every node of a graph. The edges are given sorted: those of node i
 * are start[i] to start[i + 1] - 1, `other` holds the node at their other end. */
typedef struct {
    int64_t real_bytes, threads;
    int64_t nodes, features; /* N, F */
    int64_t mean, single;    /* gate: divide by the number of edges; one sum over all channels */
    double power;            /* gate: p > 0 */

    const int64_t *start, *other;           /* [N + 1], [E] */
    const int64_t *back_start, *back_other; /* the same edges sorted by `other`; an_gate_backward */
    const void *weight;                     /* [E]; NULL: all 1 */
    const void *x;                          /* [N, F] contiguous; read at the other end of edges */
    const void *grad;                       /* backward only: as the forward result */
    void *result;                           /* [N, F]; an_gate, `single`: [N] */
} an_graph_call;

/* Damped oscillators driven by sequences, which are stored one after another: sequence n holds the
 * samples offsets[n] to offsets[n + 1] - 1. `state` and `pools` are read and written. */
#define AN_MOST_BIASES 16

typedef struct {
    int64_t real_bytes, threads;
    int64_t sequences, inputs, oscillators, biases; /* N, F, K, B <= AN_MOST_BIASES */

    const int64_t *offsets, *before; /* [N + 1]; [N] samples that each sequence has had before */
    const void *x;                   /* [S, F] */
    const void *weight;              /* [F, K] */
    const void *steps;               /* [3, K]: a, b, c; not read with `elapsed` */
    const double *elapsed;           /* [S], or NULL: always the same */
    const double *frequency, *q;     /* [K], read with `elapsed` */
    const void *bias;                /* [2, B, K], for y and z */
    const void *scale;               /* [2, K]: factors where responses compete, or NULL: none do */
    void *state;                     /* [N, 2, K]: y and z */
    void *pools;                     /* [N, 2, 6B + 6, K] (see resonator.h), or NULL */
    void *output;                    /* [S, 2, K]: y and z after every sample, or NULL */
} an_resonator_call;

#if defined(_WIN32)
#define AN_API __declspec(dllexport)
#else
#define AN_API __attribute__((visibility("default")))
#endif

/* Where the fields of a structure lie, for whoever fills one elsewhere. After the fields comes one
 * with the name "" and the size of the structure as its offset. */
typedef struct {
    const char *name;
    int64_t offset;
} an_field;
AN_API const an_field *an_call_fields(void);
AN_API const an_field *an_graph_call_fields(void);
AN_API const an_field *an_resonator_call_fields(void);

AN_API int an_forward(const an_call *call);
AN_API int an_backward(const an_call *call);

/* result_i = sum over the edges of i of weight * x_other */
AN_API int an_neighbour_sum(const an_graph_call *call);
/* result_i = sum or mean over the edges of i of |x_other - x_i|^power, and its gradient by x */
AN_API int an_gate(const an_graph_call *call);
AN_API int an_gate_backward(const an_graph_call *call);

AN_API int an_resonate(const an_resonator_call *call);

/* The instruction sets this build and CPU can run, separated by blanks, best last. */
AN_API const char *an_available(void);
AN_API const char *an_instruction_set(void); /* the active one */
/* Whether a call may ask for bfloat16 with the active instruction set. */
AN_API int an_has_bfloat16(void);
/* Whether there is AMX; asks Linux for its registers, for the process. */
AN_API int an_has_amx(void);
AN_API void an_use_amx(int use); /* where there is AMX: for bfloat16, as by default, or not */
AN_API int an_select(const char *name); /* 0, or 1 if it is unknown or cannot run here */

/* The elementary functions of the active instruction set on n numbers, for tests. */
AN_API int an_elementary(const char *name, int64_t real_bytes, const void *x, void *y, int64_t n);

#endif
