/* The first process of a pod: it waits, takes in orphans, and goes when it is told to. */
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void on_end(int signal)
{
    (void)signal;
    _exit(0);
}

static void on_child(int signal)
{
    (void)signal;
    while (waitpid(-1, NULL, WNOHANG) > 0) {
    }
}

int main(void)
{
    signal(SIGINT, on_end);
    signal(SIGTERM, on_end);
    signal(SIGCHLD, on_child);
    for (;;) {
        pause();
    }
}
