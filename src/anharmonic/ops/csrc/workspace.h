/* Scratch memory that outlives a call: the next call finds its pages mapped. */
#ifndef AN_WORKSPACE_H
#define AN_WORKSPACE_H

#include <stddef.h>

#include "anharmonic.h"

/* Scratch of at least `bytes`, aligned to 64 bytes, contents undefined; NULL if memory is out. Any
 * thread may take, and any thread may give back what another took. */
AN_API void *an_workspace_take(size_t bytes);

/* Gives scratch back (NULL is allowed). At most 512 MiB are kept, the most recently given. */
AN_API void an_workspace_give(void *workspace);

/* Asks for large pages for what lies in [p, p + bytes), if that is at least 4 MiB; a hint only. */
void an_advise_huge(void *p, size_t bytes);

#endif
