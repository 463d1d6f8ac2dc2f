#include "pool.h"

#include <fenv.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>

enum { SPIN_NANOSECONDS = 30000, PAUSES_PER_LOOK_AT_THE_CLOCK = 16 };

typedef struct {
    void (*work)(void *context, int64_t index);
    void *context;
    int64_t count;
    fenv_t environment;
} an_job;

/* `mutex` guards everything but `busy` and `next`. `places` and `active` are only changed under it,
 * and are atomic because those who spin read them without it. */
static struct {
    pthread_mutex_t mutex;
    pthread_cond_t wake; /* sleeping workers: there are places */
    pthread_cond_t done; /* the caller: no worker is active any more */
    atomic_int busy;     /* a caller has the pool */
    atomic_int places;   /* workers that may still join the job */
    atomic_int active;   /* workers that have joined and not yet left */
    atomic_llong next;   /* the next index of the job */
    an_job job;
    int workers, sleeping, waiting;
} pool = {.mutex = PTHREAD_MUTEX_INITIALIZER,
          .wake = PTHREAD_COND_INITIALIZER,
          .done = PTHREAD_COND_INITIALIZER};

static void pause_briefly(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static int64_t nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Spins for a short while, or until `value` is zero (zero = 1) or is not (zero = 0). */
static void spin_until(atomic_int *value, int zero) {
    const int64_t end = nanoseconds() + SPIN_NANOSECONDS;
    do {
        for (int i = 0; i < PAUSES_PER_LOOK_AT_THE_CLOCK; i++) {
            if ((atomic_load_explicit(value, memory_order_acquire) == 0) == zero) return;
            pause_briefly();
        }
    } while (nanoseconds() < end);
}

static void run_indices(const an_job *job) {
    int64_t index;
    while ((index = atomic_fetch_add_explicit(&pool.next, 1, memory_order_relaxed)) < job->count)
        job->work(job->context, index);
}

static void *work_for_ever(void *unused) {
    (void)unused;
    pthread_mutex_lock(&pool.mutex);
    for (;;) {
        if (pool.places == 0) {
            pthread_mutex_unlock(&pool.mutex);
            spin_until(&pool.places, 0);
            pthread_mutex_lock(&pool.mutex);
        }
        if (pool.places == 0) {
            pool.sleeping++;
            pthread_cond_wait(&pool.wake, &pool.mutex);
            pool.sleeping--;
        }
        if (pool.places == 0) continue;
        pool.places--;
        pool.active++;
        const an_job job = pool.job;
        pthread_mutex_unlock(&pool.mutex);
        fesetenv(&job.environment);
        run_indices(&job);
        pthread_mutex_lock(&pool.mutex);
        pool.places = 0; /* no index is left, so nobody else need join */
        if (--pool.active == 0 && pool.waiting) pthread_cond_signal(&pool.done);
    }
    return NULL;
}

/* Makes workers until there are `wanted`, or until no more can be made. The mutex is held. Signals
 * that come from outside stay with the program's own threads. */
static void grow(int wanted) {
    if (pool.workers >= wanted) return;
    pthread_attr_t detached;
    if (pthread_attr_init(&detached) != 0) return;
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
#if !defined(_WIN32) /* which knows no signals between threads */
    static const int synchronous[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP};
    sigset_t blocked, before;
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof synchronous / sizeof *synchronous; i++)
        sigdelset(&blocked, synchronous[i]);
    pthread_sigmask(SIG_BLOCK, &blocked, &before);
#endif
    pthread_t thread;
    while (pool.workers < wanted && pthread_create(&thread, &detached, work_for_ever, NULL) == 0)
        pool.workers++;
#if !defined(_WIN32)
    pthread_sigmask(SIG_SETMASK, &before, NULL);
#endif
    pthread_attr_destroy(&detached);
}

/* Makes numbers near the smallest of their type 0, in this thread, and returns the mode before. */
static uint64_t flush_tiny(void) {
#if defined(__SSE__)
    const unsigned before = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(before | 0x8040u); /* results to zero, and operands */
    return before;
#elif defined(__aarch64__)
    uint64_t before;
    __asm__ volatile("mrs %0, fpcr" : "=r"(before));
    __asm__ volatile("msr fpcr, %0" : : "r"(before | (UINT64_C(1) << 24)));
    return before;
#else
    return 0;
#endif
}

static void restore_mode(uint64_t before) {
#if defined(__SSE__)
    __builtin_ia32_ldmxcsr((unsigned)before);
#elif defined(__aarch64__)
    __asm__ volatile("msr fpcr, %0" : : "r"(before));
#else
    (void)before;
#endif
}

void an_parallel(int64_t count, int threads, void (*work)(void *context, int64_t index),
                 void *context) {
    if (count <= 1 || threads <= 1 || atomic_exchange(&pool.busy, 1)) {
        for (int64_t index = 0; index < count; index++) work(context, index);
        return;
    }
    int places = (int)(count < threads ? count : threads) - 1;
    an_job job = {.work = work, .context = context, .count = count};
    fegetenv(&job.environment);

    pthread_mutex_lock(&pool.mutex);
    grow(places);
    if (places > pool.workers) places = pool.workers;
    pool.job = job;
    atomic_store_explicit(&pool.next, 0, memory_order_relaxed);
    pool.places = places;
    /* Workers that are awake look at `places` before they sleep; only the rest must be woken. */
    for (int awake = pool.workers - pool.sleeping; awake < places; awake++)
        pthread_cond_signal(&pool.wake);
    pthread_mutex_unlock(&pool.mutex);

    run_indices(&job);

    pthread_mutex_lock(&pool.mutex);
    pool.places = 0;
    if (pool.active > 0) {
        pthread_mutex_unlock(&pool.mutex);
        spin_until(&pool.active, 1);
        pthread_mutex_lock(&pool.mutex);
        pool.waiting = 1;
        while (pool.active > 0) pthread_cond_wait(&pool.done, &pool.mutex);
        pool.waiting = 0;
    }
    pthread_mutex_unlock(&pool.mutex);
    atomic_store(&pool.busy, 0);
}

void an_parallel_flushing(int64_t count, int threads, void (*work)(void *context, int64_t index),
                          void *context) {
    const uint64_t before = flush_tiny();
    an_parallel(count, threads, work, context);
    restore_mode(before);
}

#if !defined(_WIN32) /* which does not fork */
static void before_fork(void) { pthread_mutex_lock(&pool.mutex); }

static void after_fork_in_parent(void) { pthread_mutex_unlock(&pool.mutex); }

/* Only the thread that forked lives on in the child: no workers, no other caller. */
static void after_fork_in_child(void) {
    pool.mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    pool.wake = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    pool.done = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    pool.busy = pool.places = pool.active = 0;
    pool.workers = pool.sleeping = pool.waiting = 0;
}

__attribute__((constructor)) static void prepare_for_forks(void) {
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}
#endif
