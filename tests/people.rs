//! What people are shown of a machine, on real LVM: beside a driver and without one.

mod check;
mod manifests;
mod support;
mod vgs;
mod volumes;
