/* Loaded with LD_PRELOAD: locks on files fail with the error LOCK_ERRNO, or do nothing if that is 0, as on some network file systems. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>

#define WITHOUT_LOCKS(name)                                                     \
  int name(int file, int command, ...) {                                        \
    va_list rest;                                                               \
    va_start(rest, command);                                                    \
    void *argument = va_arg(rest, void *);                                      \
    va_end(rest);                                                               \
    if (command == F_SETLK || command == F_SETLKW || command == F_GETLK) {      \
      errno = atoi(getenv("LOCK_ERRNO"));                                       \
      if (errno == 0 && command == F_GETLK)                                     \
        ((struct flock *)argument)->l_type = F_UNLCK;                           \
      return errno == 0 ? 0 : -1;                                               \
    }                                                                           \
    int (*real)(int, int, ...) = (int (*)(int, int, ...))dlsym(RTLD_NEXT, #name); \
    return real(file, command, argument);                                       \
  }

WITHOUT_LOCKS(fcntl)
WITHOUT_LOCKS(fcntl64)
