/*
 * Chooses where the one-file program unpacks itself, before PyInstaller's own code runs.
 *
 * The system's temp directory will not do: it may be mounted noexec, be full, or be cleaned while
 * the box runs. The place is, in this order: VENUEBOX_RUNTIME; `runtime/` in the data directory;
 * a cache directory of this user; and only then a private folder below the temp directories. It
 * must belong to this user alone, allow programs, and have room. What is unpacked lies in a
 * folder of its own, which stays locked as long as a process of it lives: what is not locked was
 * left by a program that was killed, and is removed here.
 *
 * Linked into the bootloader by packaging/build.py; runs as a constructor.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#ifndef ROOM_MIB
#error "ROOM_MIB: how much room the unpacked program takes"
#endif

static char run[PATH_MAX]; /* the folder of this start */
static mode_t mode = 0700;

static int is_own_folder(const char *path)
{
    struct stat state;
    return lstat(path, &state) == 0 && S_ISDIR(state.st_mode) && state.st_uid == geteuid();
}

/* Makes the folder with those above it, as far as they are missing. */
static void make_folders(const char *path)
{
    char part[PATH_MAX];
    snprintf(part, sizeof part, "%s", path);
    for (char *slash = part + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = '\0';
        mkdir(part, 0700);
        *slash = '/';
    }
    mkdir(part, 0700);
}

static int remove_entry(const char *path, const struct stat *state, int kind, struct FTW *walk)
{
    (void)state;
    (void)kind;
    (void)walk;
    return remove(path);
}

static void remove_left_behind(const char *place)
{
    DIR *folder = opendir(place);
    if (folder == NULL)
        return;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        char path[PATH_MAX];
        if (strncmp(entry->d_name, "run-", 4) != 0 && strncmp(entry->d_name, "_MEI", 4) != 0)
            continue;
        if (snprintf(path, sizeof path, "%s/%s", place, entry->d_name) >= (int)sizeof path)
            continue;
        int handle = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (handle < 0)
            continue;
        if (flock(handle, LOCK_EX | LOCK_NB) == 0)
            nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
        close(handle);
    }
    closedir(folder);
}

/* Whether this can be the place: then TMPDIR names a locked folder of this start in it. */
static int take(const char *place)
{
    struct statvfs volume;
    int taken = 0;

    if (place[0] != '/')
        return 0;
    make_folders(place);
    if (!is_own_folder(place) || chmod(place, mode) != 0)
        return 0;
    int guard = open(place, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (guard < 0)
        return 0;
    /* One start at a time: a folder is never seen between its making and its locking. */
    if (flock(guard, LOCK_EX) == 0) {
        remove_left_behind(place);
        if (fstatvfs(guard, &volume) == 0 && !(volume.f_flag & ST_NOEXEC) &&
            (unsigned long long)volume.f_bavail * volume.f_frsize >= ROOM_MIB * 1048576ULL &&
            snprintf(run, sizeof run, "%s/run-XXXXXX", place) < PATH_MAX - 32 &&
            mkdtemp(run) != NULL && chmod(run, mode) == 0) {
            /* Inherited on purpose: the lock ends with the last process of this start. */
            int lock = open(run, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
            taken = lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0;
        }
    }
    close(guard);
    return taken && setenv("TMPDIR", run, 1) == 0;
}

static int take_below(const char *base, const char *leaf)
{
    char place[PATH_MAX];
    if (base == NULL || base[0] == '\0')
        return 0;
    if (snprintf(place, sizeof place, "%s/%s", base, leaf) >= (int)sizeof place)
        return 0;
    return take(place);
}

/* A data directory is only used, never made, and only its owner leaves anything in it. */
static int take_in_data(const char *data)
{
    char resolved[PATH_MAX];
    return data != NULL && data[0] != '\0' && realpath(data, resolved) != NULL &&
           is_own_folder(resolved) && take_below(resolved, "runtime");
}

static const char *named_data(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--data") == 0 && i + 1 < argc)
            return argv[i + 1];
        if (strncmp(argv[i], "--data=", 7) == 0)
            return argv[i] + 7;
    }
    return getenv("VENUEBOX_DATA");
}

static int take_in_home(const char *variable, const char *below_home, const char *leaf)
{
    char base[PATH_MAX];
    const char *home = getenv("HOME");
    if (take_below(getenv(variable), leaf))
        return 1;
    if (home == NULL || home[0] != '/' || access(home, W_OK) != 0)
        return 0;
    snprintf(base, sizeof base, "%s/%s", home, below_home);
    return take_below(base, leaf);
}

__attribute__((constructor)) static void choose_place(int argc, char **argv, char **environment)
{
    static const char *const temporary[] = {"/var/tmp", "/tmp", "/dev/shm"};
    const char *asked = getenv("VENUEBOX_RUNTIME");
    char leaf[64];
    (void)environment;

    /* The second process of a start is told by the first where everything lies. */
    if (getenv("_PYI_APPLICATION_HOME_DIR") != NULL)
        return;
    int is_named = asked != NULL && asked[0] != '\0';
    if (!is_named && take_in_data(named_data(argc, argv)))
        return;
    /* A command that root runs goes on as the user of its data directory, who reads it too. */
    if (geteuid() == 0)
        mode = 0755;
    if (is_named) {
        if (take(asked))
            return;
        fprintf(stderr, "venuebox: VENUEBOX_RUNTIME is %s: a folder of your own with %d MiB of "
                "room, where programs may run, is needed\n", asked, ROOM_MIB);
        exit(1);
    }
    snprintf(leaf, sizeof leaf, "venuebox-%u", (unsigned)geteuid());
    if (take_below(getenv("CACHE_DIRECTORY"), "runtime"))
        return;
    if (geteuid() != 0 && /* root's home is closed to others */
        (take_in_home("XDG_CACHE_HOME", ".cache", "venuebox") || take_below(getenv("TMPDIR"), leaf)))
        return;
    for (size_t i = 0; i < sizeof temporary / sizeof *temporary; i++)
        if (take_below(temporary[i], leaf))
            return;
    fprintf(stderr, "venuebox: there is no place to unpack in: set VENUEBOX_RUNTIME to a folder "
            "of your own with %d MiB of room, where programs may run\n", ROOM_MIB);
    exit(1);
}

/* What was unpacked is gone by now. After a kill the next start does it. */
__attribute__((destructor)) static void leave_place(void)
{
    if (run[0] != '\0')
        rmdir(run);
}
