//! The real machine: LVM's own commands, and its disks.

#![allow(dead_code)]

mod encode;
mod fields;
mod parse;
mod rows;
