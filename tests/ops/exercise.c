/* Exercises the pool and the workspace; exits with 0 if all is well. Arguments: how often; with
 * anything more it ends before the forks, whose children qemu-user does not let make threads. */
#define _GNU_SOURCE
#include <fenv.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "pool.h"
#include "workspace.h"

#define CHECK(condition)                                                          \
    do {                                                                          \
        if (!(condition)) {                                                       \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);       \
            _exit(1);                                                             \
        }                                                                         \
    } while (0)

enum { MOST = 1000 };

typedef struct {
    int counts[MOST];
    int threads, inner;
    pthread_t caller;
    atomic_int others;
} task;

static void mark(void *context, int64_t index) {
    task *t = context;
    t->counts[index]++; /* plain: a race detector sees two threads on one index */
    if (!pthread_equal(pthread_self(), t->caller)) t->others++;
}

void check_each_once(int count, int threads); /* also called from Python */

void check_each_once(int count, int threads) {
    task t = {.caller = pthread_self()};
    an_parallel(count, threads, mark, &t);
    for (int i = 0; i < MOST; i++) CHECK(t.counts[i] == (i < count));
    CHECK(t.others == 0 || (count > 1 && threads > 1));
}

static void every_index_once(int times) {
    static const int counts[] = {0, 1, 2, 3, 17, MOST}, threads[] = {-1, 0, 1, 2, 3, 8};
    for (int n = 0; n < times; n++)
        for (int i = 0; i < 6; i++)
            for (int j = 0; j < 6; j++) check_each_once(counts[i], threads[j]);
}

static void meet(void *context, int64_t index) {
    (void)index;
    atomic_int *here = context;
    (*here)++;
    while (*here < 3) usleep(10);
}

/* Three indices that wait for one another end only if three threads work at a time; nobody else may
 * have the pool meanwhile. */
void threads_work_together(int times);

void threads_work_together(int times) {
    for (int n = 0; n < times; n++) {
        atomic_int here = 0;
        an_parallel(3, 3, meet, &here);
        CHECK(here == 3);
        if (n % 8 == 0) usleep(500); /* let the workers fall asleep */
    }
}

static void nest(void *context, int64_t index) {
    task inner = {.caller = pthread_self()};
    an_parallel(20, 4, mark, &inner);
    for (int i = 0; i < 20; i++) CHECK(inner.counts[i] == 1);
    CHECK(inner.others == 0);
    mark(context, index);
}

static void nested_calls_run_inline(int times) {
    for (int n = 0; n < times; n++) {
        task t = {.caller = pthread_self()};
        an_parallel(30, 4, nest, &t);
        for (int i = 0; i < 30; i++) CHECK(t.counts[i] == 1);
    }
}

static void *call_often(void *argument) {
    for (int n = 0; n < *(int *)argument; n++) {
        check_each_once(n % 50, 4);
        const size_t bytes = (size_t)(n % 7) * 10000 + 1;
        char *scratch = an_workspace_take(bytes);
        CHECK(scratch != NULL && (uintptr_t)scratch % 64 == 0);
        memset(scratch, n & 0x7f, bytes);
        for (size_t i = 0; i < bytes; i += 999) CHECK(scratch[i] == (n & 0x7f));
        an_workspace_give(scratch);
    }
    return NULL;
}

static void several_callers(int times) {
    pthread_t callers[6];
    for (int i = 0; i < 6; i++) CHECK(pthread_create(&callers[i], NULL, call_often, &times) == 0);
    for (int i = 0; i < 6; i++) pthread_join(callers[i], NULL);
}

static int ends_well(pid_t child) {
    int status;
    for (int i = 0; i < 2000; i++) {
        if (waitpid(child, &status, WNOHANG) == child)
            return WIFEXITED(status) && WEXITSTATUS(status) == 0;
        usleep(10000);
    }
    kill(child, SIGKILL); /* it hangs */
    return 0;
}

/* Forks while other threads are inside the pool and the workspace, and again in the child. Not so
 * under AddressSanitizer: its own allocator may stay locked in the child. */
#if defined(__SANITIZE_ADDRESS__)
enum { CALLERS = 0 };
#else
enum { CALLERS = 3 };
#endif

static void forks(int times) {
    int calls = 50 * times;
    pthread_t callers[CALLERS + 1];
    for (int i = 0; i < CALLERS; i++) CHECK(pthread_create(&callers[i], NULL, call_often, &calls) == 0);
    for (int n = 0; n < times; n++) {
        const pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            int few = 20;
            call_often(&few);
            threads_work_together(3);
            const pid_t grandchild = fork();
            if (grandchild == 0) {
                call_often(&few);
                threads_work_together(3);
                _exit(0);
            }
            _exit(!ends_well(grandchild));
        }
        CHECK(ends_well(child));
    }
    for (int i = 0; i < CALLERS; i++) pthread_join(callers[i], NULL);
}

static void compare_rounding(void *context, int64_t index) {
    (void)index;
    CHECK(fegetround() == *(int *)context);
}

static void workers_round_as_the_caller(int times) {
    for (int n = 0; n < times; n++) {
        int modes[] = {FE_UPWARD, FE_TONEAREST}, *mode = &modes[n % 2];
        fesetround(*mode);
        an_parallel(50, 4, compare_rounding, mode);
    }
    fesetround(FE_TONEAREST);
}

/* Bytes of memory that the process holds; 0 where Linux is not there to ask. */
static long resident(void) {
    long pages = 0, ignored;
    FILE *memory = fopen("/proc/self/statm", "r");
    if (memory != NULL) {
        CHECK(fscanf(memory, "%ld %ld", &ignored, &pages) == 2);
        fclose(memory);
    }
    return pages * sysconf(_SC_PAGESIZE);
}

static void workspaces(void) {
    CHECK(an_workspace_take(SIZE_MAX) == NULL && an_workspace_take(SIZE_MAX / 2) == NULL);
    an_workspace_give(NULL);
    void *none = an_workspace_take(0);
    CHECK(none != NULL);
    an_workspace_give(none);
    const long before = resident(); /* an emulator has memory of its own */
    (void)before;
    enum { COUNT = 68 };
    char *blocks[COUNT]; /* of 8 MiB: more than is kept */
    for (int i = 0; i < COUNT; i++) {
        blocks[i] = an_workspace_take((size_t)8 << 20);
        CHECK(blocks[i] != NULL && (uintptr_t)blocks[i] % 64 == 0);
        memset(blocks[i], i, (size_t)8 << 20);
    }
    for (int i = 0; i < COUNT; i++) CHECK(blocks[i][12345] == i && blocks[i][(8 << 20) - 1] == i);
    for (int i = 0; i < COUNT; i++) an_workspace_give(blocks[i]);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    CHECK(resident() - before < (long)524 << 20);
    char *first = an_workspace_take(5 << 20); /* the last given comes back first */
    CHECK(first == blocks[COUNT - 1]);
    an_workspace_give(first);
#endif
    an_advise_huge(NULL, 0);
}

static void without_threads(int times) {
    const struct rlimit none = {0, 0};
    if (getuid() == 0 && setuid(65534) != 0) return; /* the limit does not hold for root */
    if (setrlimit(RLIMIT_NPROC, &none) != 0) return;
    const pid_t child = fork();
    CHECK(child < 0); /* so no thread can be made either */
    every_index_once(times);
}

int main(int arguments, char **argument) {
    const int times = arguments > 1 ? atoi(argument[1]) : 1;
    every_index_once(times);
    threads_work_together(20 * times);
    nested_calls_run_inline(times);
    several_callers(100 * times);
    workers_round_as_the_caller(20 * times);
    workspaces();
    if (arguments > 2) return 0;
    forks(times);
    const pid_t child = fork();
    if (child == 0) {
        without_threads(times);
        _exit(0);
    }
    CHECK(ends_well(child));
    return 0;
}
