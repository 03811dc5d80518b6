/* Makes the journal's disk misbehave, for the fault suite. Loaded into the real daemon with LD_PRELOAD.
 *
 * LANYARD_FAULTS names a file of at least two bytes, mapped shared, so a test changes the weather at any moment:
 *   byte 0, writes: 0 fine, 1 EIO, 2 ENOSPC, 3 half is written and then ENOSPC, 4 EROFS
 *   byte 1, syncs:  0 fine, 1 EIO, 2 ENOSPC
 * Only files whose name contains "journal.db" are concerned.
 *
 * LANYARD_SYNCED names a folder that gets a copy of each of them as it was when it was last synced: what is left after
 * a power cut that takes everything else. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static volatile unsigned char *weather;
static const char *synced;
static ssize_t (*real_write)(int, const void *, size_t);
static ssize_t (*real_pwrite)(int, const void *, size_t, off_t);
static int (*real_fsync)(int);
static int (*real_fdatasync)(int);

__attribute__((constructor)) static void begin(void) {
    real_write = dlsym(RTLD_NEXT, "write");
    real_pwrite = dlsym(RTLD_NEXT, "pwrite");
    real_fsync = dlsym(RTLD_NEXT, "fsync");
    real_fdatasync = dlsym(RTLD_NEXT, "fdatasync");
    synced = getenv("LANYARD_SYNCED");
    const char *path = getenv("LANYARD_FAULTS");
    int fd = path ? open(path, O_RDONLY) : -1;
    if (fd < 0) return;
    void *page = mmap(NULL, 2, PROT_READ, MAP_SHARED, fd, 0);
    if (page != MAP_FAILED) weather = page;
    close(fd);
}

/* Where a file of the journal is; 0 for any other. */
static int place_of(int fd, char name[4096]) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, name, 4095);
    if (length < 0) return 0;
    name[length] = 0;
    return strstr(name, "journal.db") != NULL;
}

static int is_journal(int fd) {
    char name[4096];
    return place_of(fd, name);
}

/* A new journal is made aside and then moved to its place. */
static void keep(int fd) {
    char name[4096], aside[4200], copy[4200], bytes[65536];
    if (!synced || !place_of(fd, name)) return;
    const char *base = strrchr(name, '/') + 1;
    snprintf(aside, sizeof aside, "%s/part-%s", synced, base);
    snprintf(copy, sizeof copy, "%s/%s", synced, strcmp(base, "journal.db-new") ? base : "journal.db");
    int from = open(name, O_RDONLY), to = open(aside, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    for (ssize_t count; from >= 0 && to >= 0 && (count = read(from, bytes, sizeof bytes)) > 0;)
        if (real_write(to, bytes, (size_t)count) != count) break;
    close(from);
    close(to);
    rename(aside, copy);
}

/* 0 to go on, -1 with errno to fail, or how many bytes to write before failing. */
static ssize_t on_write(int fd, size_t size) {
    unsigned char mode = weather ? weather[0] : 0;
    if (!mode || !is_journal(fd)) return 0;
    static __thread int halved;
    switch (mode) {
    case 1: errno = EIO; return -1;
    case 2: errno = ENOSPC; return -1;
    case 3:
        if (size > 1 && !halved) { halved = 1; return (ssize_t)(size / 2); }
        halved = 0; errno = ENOSPC; return -1;
    case 4: errno = EROFS; return -1;
    default: return 0;
    }
}

static int on_sync(int fd) {
    unsigned char mode = weather ? weather[1] : 0;
    if (!mode || !is_journal(fd)) return 0;
    errno = mode == 2 ? ENOSPC : EIO;
    return -1;
}

ssize_t write(int fd, const void *bytes, size_t size) {
    ssize_t verdict = on_write(fd, size);
    if (verdict < 0) return -1;
    return real_write(fd, bytes, verdict ? (size_t)verdict : size);
}

ssize_t pwrite(int fd, const void *bytes, size_t size, off_t at) {
    ssize_t verdict = on_write(fd, size);
    if (verdict < 0) return -1;
    return real_pwrite(fd, bytes, verdict ? (size_t)verdict : size, at);
}

ssize_t pwrite64(int fd, const void *bytes, size_t size, off_t at) { return pwrite(fd, bytes, size, at); }

int fsync(int fd) {
    int failed = on_sync(fd) || real_fsync(fd);
    if (!failed) keep(fd);
    return failed ? -1 : 0;
}

int fdatasync(int fd) {
    int failed = on_sync(fd) || real_fdatasync(fd);
    if (!failed) keep(fd);
    return failed ? -1 : 0;
}
