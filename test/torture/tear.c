/*
 * Loaded into a command with LD_PRELOAD: kills it at the n-th change of a file in a directory whose path contains one of
 * the names in TEAR_FILES (separated by spaces), before the change or in the middle of it, or lets this change alone
 * fail. With TEAR_CALL, only changes by that function are counted. A torn write leaves a prefix of its 4 KiB pages, or
 * for a log or any other file that is appended to, a prefix of its bytes. TEAR is
 * "directory<TAB>n<TAB>mode<TAB>permille"; mode is `whole` (killed before the change), `torn` (killed after
 * permille/1000 of it), `failed` (an error of the disk) or `count` (writes the number of changes to TEAR_COUNT).
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#define PAGE 4096

static char directory[PATH_MAX];
static size_t directory_length;
static char names_text[PATH_MAX];
static char *files[8];
static int names;
static long kill_at = -1;
static int is_torn;
static int is_failing;
static const char *counted_call;
static long permille;
static long changes;
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

__attribute__((constructor)) static void begin(void) {
  const char *plan = getenv("TEAR");
  char mode[16] = "";
  if (plan == NULL || sscanf(plan, "%4095[^\t]\t%ld\t%15s\t%ld", directory, &kill_at, mode, &permille) != 4) return;
  is_torn = strcmp(mode, "torn") == 0;
  is_failing = strcmp(mode, "failed") == 0;
  counted_call = getenv("TEAR_CALL");
  directory_length = strlen(directory);
  snprintf(names_text, sizeof names_text, "%s", getenv("TEAR_FILES") == NULL ? "" : getenv("TEAR_FILES"));
  for (char *name = strtok(names_text, " "); name != NULL && names < 8; name = strtok(NULL, " ")) files[names++] = name;
}

__attribute__((destructor)) static void end(void) {
  const char *file = getenv("TEAR_COUNT");
  if (file == NULL) return;
  FILE *out = fopen(file, "w");
  if (out == NULL) return;
  fprintf(out, "%ld", changes);
  fclose(out);
}

static int is_ours(const char *path) {
  if (directory_length == 0 || strncmp(path, directory, directory_length) != 0) return 0;
  for (int name = 0; name < names; name++)
    if (strstr(path + directory_length, files[name]) != NULL) return 1;
  return 0;
}

static int is_our_file(int file) {
  char link[64], path[PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return 0;
  path[length] = '\0';
  return is_ours(path);
}

/* Whether this change is the one to die at, or to fail. */
static int is_last(const char *call) {
  if (counted_call != NULL && strcmp(call, counted_call) != 0) return 0;
  pthread_mutex_lock(&turn);
  int is = ++changes == kill_at;
  if (!is) pthread_mutex_unlock(&turn);
  /* Otherwise, no other thread may change a file from now on. */
  return is;
}

static int end_change(void) {
  if (!is_failing) {
    kill(getpid(), SIGKILL);
    for (;;) pause();
  }
  pthread_mutex_unlock(&turn);
  errno = EIO;
  return -1;
}

/* How much of a write reaches the disk: whole pages of the file, or any number of bytes if it is appended to. */
static size_t torn_part(int file, size_t size, off_t offset) {
  struct stat found;
  size_t part = size * permille / 1000;
  if (fstat(file, &found) == 0 && offset >= found.st_size && size < 64 * PAGE) return part;
  off_t end = (offset + (off_t)part) / PAGE * PAGE;
  return end > offset ? (size_t)(end - offset) : 0;
}

ssize_t pwrite64(int file, const void *data, size_t size, off64_t offset) {
  if (is_our_file(file) && is_last("pwrite")) {
    if (is_torn) REAL(pwrite64)(file, data, torn_part(file, size, offset), offset);
    return end_change();
  }
  return REAL(pwrite64)(file, data, size, offset);
}

ssize_t pwrite(int file, const void *data, size_t size, off_t offset) {
  if (is_our_file(file) && is_last("pwrite")) {
    if (is_torn) REAL(pwrite)(file, data, torn_part(file, size, offset), offset);
    return end_change();
  }
  return REAL(pwrite)(file, data, size, offset);
}

ssize_t write(int file, const void *data, size_t size) {
  if (is_our_file(file) && is_last("write")) {
    if (is_torn) REAL(write)(file, data, torn_part(file, size, lseek(file, 0, SEEK_CUR)));
    return end_change();
  }
  return REAL(write)(file, data, size);
}

int fsync(int file) {
  if (is_our_file(file) && is_last("fsync")) return end_change();
  return REAL(fsync)(file);
}

int fdatasync(int file) {
  if (is_our_file(file) && is_last("fdatasync")) return end_change();
  return REAL(fdatasync)(file);
}

int ftruncate64(int file, off64_t size) {
  if (is_our_file(file) && is_last("ftruncate")) return end_change();
  return REAL(ftruncate64)(file, size);
}

int ftruncate(int file, off_t size) {
  if (is_our_file(file) && is_last("ftruncate")) return end_change();
  return REAL(ftruncate)(file, size);
}

int rename(const char *from, const char *to) {
  if ((is_ours(from) || is_ours(to)) && is_last("rename")) return end_change();
  return REAL(rename)(from, to);
}

int unlink(const char *path) {
  if (is_ours(path) && is_last("unlink")) return end_change();
  return REAL(unlink)(path);
}
