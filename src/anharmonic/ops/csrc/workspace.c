#define _GNU_SOURCE
#include "workspace.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#if defined(__linux__)
#include <sys/mman.h>
#include <unistd.h>
#endif

#if defined(_WIN32)
#include <malloc.h>
#define free_aligned _aligned_free
#else
#define free_aligned free
#endif

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif

#define MIB ((size_t)1 << 20)
#define ALIGNMENT ((size_t)64)
#if defined(__SANITIZE_ADDRESS__)
/* Every block is fresh and of its exact size, so that every slip shows. */
#define KEEP ((size_t)0)
#define ROUNDING ((size_t)1)
#else
#define KEEP (512 * MIB)
#define ROUNDING ((size_t)4096)
#endif

/* Lies in the 64 bytes before the scratch. */
typedef struct block {
    struct block *older;
    size_t bytes;
} block;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static block *newest; /* blocks that are kept, the most recently given first */
static size_t kept;

/* Takes out the smallest kept block that is large enough; the newest of equals. */
static block *take_kept(size_t bytes) {
    block **best = NULL;
    for (block **link = &newest; *link != NULL; link = &(*link)->older)
        if ((*link)->bytes >= bytes && (best == NULL || (*link)->bytes < (*best)->bytes))
            best = link;
    if (best == NULL) return NULL;
    block *found = *best;
    *best = found->older;
    kept -= found->bytes;
    return found;
}

/* Takes out, newest first, what does not fit into KEEP beside newer ones; chained by `older`. */
static block *take_surplus(void) {
    size_t sum = 0;
    block *surplus = NULL;
    for (block **link = &newest; *link != NULL;) {
        block *here = *link;
        if (sum + here->bytes <= KEEP) {
            sum += here->bytes;
            link = &here->older;
        } else {
            *link = here->older;
            here->older = surplus;
            surplus = here;
        }
    }
    kept = sum;
    return surplus;
}

void *an_workspace_take(size_t bytes) {
    if (bytes > SIZE_MAX - ALIGNMENT - ROUNDING) return NULL;
    bytes = (bytes + ROUNDING - 1) / ROUNDING * ROUNDING;
    pthread_mutex_lock(&mutex);
    block *found = take_kept(bytes);
    pthread_mutex_unlock(&mutex);
    if (found == NULL) {
        void *fresh = NULL;
#if defined(_WIN32)
        fresh = _aligned_malloc(ALIGNMENT + bytes, ALIGNMENT);
#else
        if (posix_memalign(&fresh, ALIGNMENT, ALIGNMENT + bytes) != 0) return NULL;
#endif
        if (fresh == NULL) return NULL;
        an_advise_huge(fresh, ALIGNMENT + bytes);
        found = fresh;
        found->bytes = bytes;
    }
    void *scratch = (char *)found + ALIGNMENT;
#if defined(__SANITIZE_ADDRESS__)
    memset(scratch, 0xff, bytes); /* NaN: what is read before it is written shows */
#endif
    return scratch;
}

void an_workspace_give(void *workspace) {
    if (workspace == NULL) return;
    block *given = (block *)((char *)workspace - ALIGNMENT);
    pthread_mutex_lock(&mutex);
    given->older = newest;
    newest = given;
    kept += given->bytes;
    block *surplus = kept > KEEP ? take_surplus() : NULL;
    pthread_mutex_unlock(&mutex);
    while (surplus != NULL) {
        block *older = surplus->older;
        free_aligned(surplus);
        surplus = older;
    }
}

void an_advise_huge(void *p, size_t bytes) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    if (bytes < 4 * MIB) return;
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t begin = ((uintptr_t)p + page - 1) / page * page;
    const uintptr_t end = ((uintptr_t)p + bytes) / page * page;
    (void)madvise((void *)begin, end - begin, MADV_HUGEPAGE);
#else
    (void)p;
    (void)bytes;
#endif
}

#if !defined(_WIN32) /* which does not fork */
static void before_fork(void) { pthread_mutex_lock(&mutex); }

static void after_fork(void) { pthread_mutex_unlock(&mutex); }

__attribute__((constructor)) static void prepare_for_forks(void) {
    pthread_atfork(before_fork, after_fork, after_fork);
}
#endif
