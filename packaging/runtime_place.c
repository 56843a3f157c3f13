/*
 * Chooses where the one-file program keeps what it unpacks, before PyInstaller's own code runs.
 *
 * The system's temp directory will not do: it may be mounted noexec, be full, or be cleaned while
 * the box runs. The place is, in this order: VENUEBOX_RUNTIME; `runtime/` in the data directory;
 * a cache directory of this user; and only then a private folder below the temp directories. It
 * must belong to this user alone, allow programs, and have room.
 *
 * The first start unpacks into the folder `run-…` in it, syncs it, and renames it to the hash of
 * the program. Later starts and commands of the same program write nothing. A folder is locked as
 * long as a process uses it; one that is not locked and is not this program's is removed here.
 *
 * Linked into the bootloader by packaging/build.py, which writes the hash into BUILD; runs as a
 * constructor. The bootloader believes that it is the second process of a start.
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
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef ROOM_MIB
#error "ROOM_MIB: how much room the unpacked program takes"
#endif

/* PyInstaller's name for the folder of the unpacked program has this form. */
#define UNPACKED "_MEI00000001kept00"

/* Volatile, so that the compiler does not read it before build.py has written it. */
static volatile const char BUILD[65] =
    "venuebox-build-venuebox-build-venuebox-build-venuebox-build-venu";
static char kept[PATH_MAX]; /* the folder of the unpacked program */
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

/* Removes what other programs and interrupted starts have left, unless a process uses it. */
static void remove_left_behind(const char *place, const char *own)
{
    DIR *folder = opendir(place);
    if (folder == NULL)
        return;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        char path[PATH_MAX];
        size_t length = strlen(entry->d_name);
        int is_program = length == sizeof BUILD - 1 &&
                         strspn(entry->d_name, "0123456789abcdef") == length;
        if (strcmp(entry->d_name, own) == 0 ||
            (!is_program && strncmp(entry->d_name, "run-", 4) != 0 &&
             strncmp(entry->d_name, "_MEI", 4) != 0))
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

/* The second process unpacks; packaging/start.py in it syncs and renames what was unpacked. */
static int unpack(const char *run, char **argv)
{
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && setenv("TMPDIR", run, 1) == 0 &&
            setenv("VENUEBOX_UNPACK", UNPACKED, 1) == 0)
            execv("/proc/self/exe", argv);
        _exit(1);
    }
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Unpacks into `kept`, all of it or nothing. */
static int keep(const char *place, int guard, char **argv)
{
    char run[PATH_MAX];
    struct statvfs volume;

    return fstatvfs(guard, &volume) == 0 && !(volume.f_flag & ST_NOEXEC) &&
           (unsigned long long)volume.f_bavail * volume.f_frsize >= ROOM_MIB * 1048576ULL &&
           snprintf(run, sizeof run, "%s/run-XXXXXX", place) < PATH_MAX - 64 &&
           mkdtemp(run) != NULL && chmod(run, mode) == 0 && unpack(run, argv) &&
           rename(run, kept) == 0 && fsync(guard) == 0;
}

/* Whether this can be the place: then `kept` is there, and locked by this process. */
static int take(const char *place, char **argv)
{
    char build[sizeof BUILD];
    int taken = 0;

    for (size_t i = 0; i < sizeof build; i++)
        build[i] = BUILD[i];
    if (place[0] != '/' ||
        snprintf(kept, sizeof kept, "%s/%s", place, build) >= PATH_MAX - (int)sizeof UNPACKED)
        return 0;
    make_folders(place);
    if (!is_own_folder(place) || chmod(place, mode) != 0)
        return 0;
    int guard = open(place, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (guard < 0)
        return 0;
    /* One start at a time: a folder is never seen between its making and its locking. */
    if (flock(guard, LOCK_EX) == 0) {
        remove_left_behind(place, build);
        if (is_own_folder(kept) || keep(place, guard, argv)) {
            /* Inherited on purpose: the lock ends with the last process of this start. */
            int lock = open(kept, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
            taken = lock >= 0 && flock(lock, LOCK_SH | LOCK_NB) == 0;
        }
    }
    close(guard);
    return taken;
}

/* Starts this program again, with its libraries from `kept`. Returns if that fails. */
static void start_from_kept(char **argv)
{
    char self[PATH_MAX], home[PATH_MAX + sizeof UNPACKED], libraries[2 * PATH_MAX];
    const char *before = getenv("LD_LIBRARY_PATH");
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);

    if (length < 0)
        return;
    self[length] = '\0';
    snprintf(home, sizeof home, "%s/%s", kept, UNPACKED);
    int is_set = before != NULL && before[0] != '\0';
    if (is_set)
        setenv("LD_LIBRARY_PATH_ORIG", before, 1);
    if (snprintf(libraries, sizeof libraries, "%s%s%s", home, is_set ? ":" : "",
                 is_set ? before : "") >= (int)sizeof libraries)
        return;
    setenv("LD_LIBRARY_PATH", libraries, 1);
    setenv("_PYI_ARCHIVE_FILE", self, 1);
    setenv("_PYI_APPLICATION_HOME_DIR", home, 1);
    setenv("_PYI_PARENT_PROCESS_LEVEL", "0", 1);
    execv(self, argv);
}

static int take_below(const char *base, const char *leaf, char **argv)
{
    char place[PATH_MAX];
    if (base == NULL || base[0] == '\0')
        return 0;
    if (snprintf(place, sizeof place, "%s/%s", base, leaf) >= (int)sizeof place)
        return 0;
    return take(place, argv);
}

/* A data directory is only used, never made, and only its owner leaves anything in it. */
static int take_in_data(const char *data, char **argv)
{
    char resolved[PATH_MAX];
    return data != NULL && data[0] != '\0' && realpath(data, resolved) != NULL &&
           is_own_folder(resolved) && take_below(resolved, "runtime", argv);
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

static int take_in_home(const char *variable, const char *below_home, const char *leaf,
                        char **argv)
{
    char base[PATH_MAX];
    const char *home = getenv("HOME");
    if (take_below(getenv(variable), leaf, argv))
        return 1;
    if (home == NULL || home[0] != '/' || access(home, W_OK) != 0)
        return 0;
    snprintf(base, sizeof base, "%s/%s", home, below_home);
    return take_below(base, leaf, argv);
}

static int choose_place(int argc, char **argv)
{
    static const char *const temporary[] = {"/var/tmp", "/tmp", "/dev/shm"};
    const char *asked = getenv("VENUEBOX_RUNTIME");
    char leaf[64];

    int is_named = asked != NULL && asked[0] != '\0';
    if (!is_named && take_in_data(named_data(argc, argv), argv))
        return 1;
    /* A command that root runs goes on as the user of its data directory, who reads it too. */
    if (geteuid() == 0)
        mode = 0755;
    snprintf(leaf, sizeof leaf, "venuebox-%u", (unsigned)geteuid());
    if (is_named) {
        /* Below it, because modes are changed and old programs removed there. */
        if (take_below(asked, leaf, argv))
            return 1;
        fprintf(stderr, "venuebox: VENUEBOX_RUNTIME is %s: a folder of your own with %d MiB of "
                "room, where programs may run, is needed\n", asked, ROOM_MIB);
        return 0;
    }
    if (take_below(getenv("CACHE_DIRECTORY"), "runtime", argv))
        return 1;
    if (geteuid() == 0) { /* whose home is closed to others */
        if (take_below("/var/cache", leaf, argv))
            return 1;
    } else if (take_in_home("XDG_CACHE_HOME", ".cache", "venuebox", argv) ||
               take_below(getenv("TMPDIR"), leaf, argv))
        return 1;
    for (size_t i = 0; i < sizeof temporary / sizeof *temporary; i++)
        if (take_below(temporary[i], leaf, argv))
            return 1;
    fprintf(stderr, "venuebox: there is no place to unpack in: set VENUEBOX_RUNTIME to a folder "
            "of your own with %d MiB of room, where programs may run\n", ROOM_MIB);
    return 0;
}

__attribute__((constructor)) static void begin(int argc, char **argv, char **environment)
{
    (void)environment;
    /* This process has been started by `unpack` or by `start_from_kept`. */
    if (getenv("VENUEBOX_UNPACK") != NULL || getenv("_PYI_APPLICATION_HOME_DIR") != NULL)
        return;
    if (choose_place(argc, argv)) {
        start_from_kept(argv);
        fprintf(stderr, "venuebox: the program cannot start itself from %s\n", kept);
    }
    exit(1);
}
