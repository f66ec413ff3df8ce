# The driver and the programs that it calls, on nothing: no shell, no package manager. `make image` builds it.
#
# Nothing runs in the finished image while it is built, so that every architecture can be built on every machine:
#   cargo build --release --target aarch64-unknown-linux-gnu
#   docker build --platform linux/arm64 --build-arg BINARY=target/aarch64-unknown-linux-gnu/release/quarry .

ARG BASE=debian:bookworm-slim

FROM --platform=$BUILDPLATFORM ${BASE} AS tools
ARG TARGETARCH
# Pinned to the distribution's versions: another one is a change to be tried, not an accident. A * stands for the
# distribution's own rebuilds, which are numbered differently on each architecture.
ARG LVM2=2.03.16-2*
ARG E2FSPROGS=1.47.0-2*
ARG UTIL_LINUX=2.38.1-5*
ARG XFSPROGS=6.1.0-1*
ARG BTRFS_PROGS=6.2-1*
COPY deploy/image/collect /collect
RUN sh /collect "$TARGETARCH" "lvm2=$LVM2" "e2fsprogs=$E2FSPROGS" "util-linux=$UTIL_LINUX" \
    "xfsprogs=$XFSPROGS" "btrfs-progs=$BTRFS_PROGS" \
    -- lvm mke2fs e2fsck resize2fs blkid mkfs.xfs xfs_repair xfs_growfs xfs_io mkfs.btrfs btrfs

FROM scratch
ARG BINARY=target/release/quarry
COPY --from=tools /image /
COPY ${BINARY} /usr/bin/quarry
# For people who run `lvm` in the container: it would wait for a udev that cannot hear it, and hold up the host's LVM.
# The driver gives its own environment to what it starts.
ENV DM_DISABLE_UDEV=1
# glibc gives each thread a heap of its own, and keeps what was free in each: with a group of 1000 LVs the driver had twice
# the memory that it has with one heap. It has few threads, which seldom want memory at the same time.
ENV MALLOC_ARENA_MAX=1
ENTRYPOINT ["/usr/bin/quarry"]
