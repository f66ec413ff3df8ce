//! Turns `proto/` into Rust: messages, clients, and servers whose unwritten
//! methods answer UNIMPLEMENTED.
//!
//! Messages that hold credentials (fields marked `csi_secret`) get a `Debug`
//! that leaves those fields out, so that no log line can hold one by accident.
//! They are found by the mark, so a new one needs no line here.

use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

use protox::prost_reflect::{DescriptorPool, ExtensionDescriptor, FieldDescriptor, MessageDescriptor};

/// Where the files below are, and what their imports are relative to.
const ROOT: &str = "proto";
/// The files to compile.
const FILES: &[&str] = &["csi/v1/csi.proto", "quarry/v1/agent.proto", "quarry/v1/stock.proto"];
/// The option that marks a field as a credential.
const SECRET: &str = "csi.v1.csi_secret";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed={ROOT}");
    let mut compiler = protox::Compiler::new([ROOT])?;
    compiler.include_imports(true).include_source_info(true).open_files(FILES)?;

    let holders = secret_holders(&compiler.descriptor_pool())?;
    let out = env::var("OUT_DIR")?;
    fs::write(Path::new(&out).join("redacted.rs"), redacted_debug(&holders)?)?;

    tonic_prost_build::configure()
        .generate_default_stubs(true)
        .skip_debug(holders.iter().map(|holder| format!(".{}", holder.message.full_name())))
        .compile_fds(compiler.file_descriptor_set())?;
    Ok(())
}

/// A message with credentials in it, and the fields that may be shown.
struct Holder {
    message: MessageDescriptor,
    shown: Vec<FieldDescriptor>,
}

/// Finds every message with a field that the option marks.
///
/// The options are read through reflection, since the plain descriptor types
/// drop the ones that they do not know.
fn secret_holders(pool: &DescriptorPool) -> Result<Vec<Holder>, Box<dyn Error>> {
    let secret = pool.get_extension_by_name(SECRET).ok_or("csi_secret is not defined")?;
    let mut holders = Vec::new();
    for message in pool.all_messages() {
        let (hidden, shown): (Vec<_>, Vec<_>) = message.fields().partition(|field| is_marked(field, &secret));
        if hidden.is_empty() {
            continue;
        }
        if message.parent_message().is_some() || message.oneofs().len() > 0 {
            return Err(format!(
                "{}: build.rs can only hide secrets of a plain top-level message",
                message.full_name()
            )
            .into());
        }
        holders.push(Holder { message, shown });
    }
    Ok(holders)
}

fn is_marked(field: &FieldDescriptor, option: &ExtensionDescriptor) -> bool {
    field.options().get_extension(option).as_bool() == Some(true)
}

/// Writes the `Debug` implementations, with paths as seen from `src/proto.rs`.
fn redacted_debug(holders: &[Holder]) -> Result<String, std::fmt::Error> {
    let mut code = String::new();
    for Holder { message, shown } in holders {
        let path = message.full_name().replace('.', "::");
        let name = message.name();
        writeln!(code, "impl ::core::fmt::Debug for {path} {{")?;
        writeln!(code, "    fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {{")?;
        writeln!(code, "        f.debug_struct({name:?})")?;
        for field in shown.iter().map(FieldDescriptor::name) {
            writeln!(code, "            .field({field:?}, &self.r#{field})")?;
        }
        writeln!(code, "            .finish_non_exhaustive()\n    }}\n}}")?;
    }
    Ok(code)
}
