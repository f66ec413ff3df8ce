//! The one integration binary: the rules of the house, and the driver on real LVM.

mod layers;
#[path = "wire/check.rs"]
mod wire;
