/* A small pool of threads.
 *
 * Threads are made when first needed and kept; between calls they spin for some microseconds, then
 * sleep. One call at a time has the pool: whoever finds it taken (another thread of the program, or
 * work that calls again from inside) runs all its indices itself, so nothing ever waits for a pool.
 * A forked child begins without threads and makes its own. */
#ifndef AN_POOL_H
#define AN_POOL_H

#include <stdint.h>

#include "anharmonic.h"

/* Runs work(context, i) for i in 0..count-1 on up to `threads` threads, the caller being one of
 * them; returns when all are done. Indices are handed out one by one, in rising order. Every thread
 * works in the caller's floating-point environment (rounding, flushing of denormals). Where no
 * thread can be made, fewer do the work. */
AN_API void an_parallel(int64_t count, int threads, void (*work)(void *context, int64_t index),
                        void *context);

/* The same, but numbers near the smallest of their type become 0, for recurrences: a state or
 * gradient that fades would otherwise be such a number for thousands of steps, and each operation
 * on it takes many times as long. (Recurrences that are compiled on a user's machine call it, too.)
 */
AN_API void an_parallel_flushing(int64_t count, int threads,
                                 void (*work)(void *context, int64_t index), void *context);

#endif
