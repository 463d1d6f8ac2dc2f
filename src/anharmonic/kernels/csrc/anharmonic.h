/* The interface of the library: plain C functions on raw pointers. */
#ifndef ANHARMONIC_H
#define ANHARMONIC_H

#define AN_API __attribute__((visibility("default")))

typedef struct {
    int model;
} an_call;

/* 0 done, else a status code. */
AN_API int an_forward(const an_call *call);
AN_API int an_backward(const an_call *call);

/* The instruction set in use: "baseline", "avx2", "avx512" or, on ARM, "neon". */
AN_API const char *an_instruction_set(void);

/* Those that this processor and this build can run, separated by spaces, the best one last. */
AN_API const char *an_available(void);

/* Uses the instruction set of that name from now on: 0 done, 1 unknown or not runnable here. To be
 * called while nothing is being computed. */
AN_API int an_select(const char *name);

#endif
