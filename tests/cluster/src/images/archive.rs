//! OCI archives: what `docker save` writes and `ctr images import` reads.
//!
//! An archive is a tar file of blobs, each named by its digest, and an index of them. Times and owners are left out, so
//! that the same content always makes the same archive.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tar::{Builder, EntryType, Header};

use crate::Error;
use crate::digest::sha256;

/// The architecture of all images: the only one that guests have.
const ARCHITECTURE: &str = "amd64";

/// A layer of an image: some files, folders and links.
#[derive(Debug, Clone, Default)]
pub struct Layer(Vec<Entry>);

#[derive(Debug, Clone)]
enum Entry {
    Folder { path: String, mode: u32 },
    File { path: String, mode: u32, source: PathBuf },
    Text { path: String, text: String },
    Link { path: String, target: String },
}

impl Layer {
    /// An empty layer. Paths in it have no slash in front; folders above a path need not be named.
    pub fn new() -> Layer {
        Layer::default()
    }

    /// Adds a folder.
    #[must_use]
    pub fn folder(mut self, path: impl Into<String>, mode: u32) -> Layer {
        self.0.push(Entry::Folder { path: path.into(), mode });
        self
    }

    /// Adds a file with the content of one on this machine.
    #[must_use]
    pub fn file(mut self, path: impl Into<String>, mode: u32, source: impl Into<PathBuf>) -> Layer {
        self.0.push(Entry::File { path: path.into(), mode, source: source.into() });
        self
    }

    /// Adds a file with this content.
    #[must_use]
    pub fn text(mut self, path: impl Into<String>, text: impl Into<String>) -> Layer {
        self.0.push(Entry::Text { path: path.into(), text: text.into() });
        self
    }

    /// Adds a symbolic link.
    #[must_use]
    pub fn link(mut self, path: impl Into<String>, target: impl Into<String>) -> Layer {
        self.0.push(Entry::Link { path: path.into(), target: target.into() });
        self
    }

    fn to_tar(&self) -> Result<Vec<u8>, Error> {
        let mut tar = Builder::new(Vec::new());
        for entry in &self.0 {
            entry.add_to(&mut tar)?;
        }
        tar.into_inner().map_err(Error::io("make a layer"))
    }
}

impl Entry {
    fn add_to(&self, tar: &mut Builder<Vec<u8>>) -> Result<(), Error> {
        match self {
            Entry::Folder { path, mode } => {
                let mut header = header(EntryType::Directory, *mode, 0);
                tar.append_data(&mut header, path, io::empty()).map_err(Error::io(format!("add {path}")))
            }
            Entry::File { path, mode, source } => {
                let content = fs::read(source).map_err(Error::at("read", source))?;
                append(tar, path, *mode, &content)
            }
            Entry::Text { path, text } => append(tar, path, 0o644, text.as_bytes()),
            Entry::Link { path, target } => {
                let mut header = header(EntryType::Symlink, 0o777, 0);
                tar.append_link(&mut header, path, target).map_err(Error::io(format!("add {path}")))
            }
        }
    }
}

/// An image: its layers, lowest first, and the names that it goes by.
#[derive(Debug, Clone, Default)]
pub struct Image {
    names: Vec<String>,
    layers: Vec<Layer>,
    entrypoint: Vec<String>,
    arguments: Vec<String>,
}

impl Image {
    /// An image without layers. A name is whole: registry, path and tag.
    pub fn new<N: Into<String>>(names: impl IntoIterator<Item = N>) -> Image {
        Image { names: names.into_iter().map(Into::into).collect(), ..Image::default() }
    }

    /// Adds a layer on top.
    #[must_use]
    pub fn layer(mut self, layer: Layer) -> Image {
        self.layers.push(layer);
        self
    }

    /// Sets the program that a container runs.
    #[must_use]
    pub fn entrypoint(mut self, program: &str) -> Image {
        self.entrypoint = vec![program.to_owned()];
        self
    }

    /// Sets the arguments that a container's own take the place of.
    #[must_use]
    pub fn arguments(mut self, arguments: &[&str]) -> Image {
        self.arguments = arguments.iter().map(|&argument| argument.to_owned()).collect();
        self
    }

    fn config(&self, layers: &[String]) -> Value {
        json!({
            "architecture": ARCHITECTURE,
            "os": "linux",
            "config": {
                "Entrypoint": self.entrypoint,
                "Cmd": self.arguments,
                "Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
            },
            "rootfs": { "type": "layers", "diff_ids": layers },
        })
    }
}

/// Writes images into one archive. A layer that several of them have is in it once.
///
/// # Errors
///
/// When a layer's file cannot be read or the archive cannot be written.
pub fn write_archive(path: &Path, images: &[Image]) -> Result<(), Error> {
    // Under another name at first: an archive that is there is whole.
    let unfinished = path.with_extension("unfinished");
    let file = File::create(&unfinished).map_err(Error::at("make", &unfinished))?;
    let mut archive = Archive { tar: Builder::new(file), blobs: Vec::new() };
    let mut manifests = Vec::new();
    for image in images {
        manifests.extend(archive.add(image)?);
    }
    archive.add_file("oci-layout", json!({ "imageLayoutVersion": "1.0.0" }).to_string().as_bytes())?;
    let index = json!({ "schemaVersion": 2, "manifests": manifests });
    archive.add_file("index.json", index.to_string().as_bytes())?;
    archive.tar.finish().map_err(Error::at("write", &unfinished))?;
    fs::rename(&unfinished, path).map_err(Error::at("make", path))
}

struct Archive {
    tar: Builder<File>,
    /// The digests of what is in it.
    blobs: Vec<String>,
}

impl Archive {
    /// Adds an image, and returns what the index has to say of it.
    fn add(&mut self, image: &Image) -> Result<Vec<Value>, Error> {
        let mut layers = Vec::new();
        let mut digests = Vec::new();
        for layer in &image.layers {
            let layer = self.add_blob("layer.v1.tar", &layer.to_tar()?)?;
            digests.push(layer["digest"].as_str().unwrap_or_default().to_owned());
            layers.push(layer);
        }
        let config = self.add_blob("config.v1+json", image.config(&digests).to_string().as_bytes())?;
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": media_type("manifest.v1+json"),
            "config": config,
            "layers": layers,
        });
        let manifest = self.add_blob("manifest.v1+json", manifest.to_string().as_bytes())?;
        let named = |name: &String| {
            let mut entry = manifest.clone();
            entry["platform"] = json!({ "architecture": ARCHITECTURE, "os": "linux" });
            entry["annotations"] = json!({ "io.containerd.image.name": name });
            entry
        };
        Ok(image.names.iter().map(named).collect())
    }

    /// Adds a blob, unless it is there already, and returns its description.
    fn add_blob(&mut self, kind: &str, content: &[u8]) -> Result<Value, Error> {
        let digest = sha256(content);
        if !self.blobs.contains(&digest) {
            self.add_file(&format!("blobs/sha256/{digest}"), content)?;
            self.blobs.push(digest.clone());
        }
        Ok(json!({
            "mediaType": media_type(kind),
            "digest": format!("sha256:{digest}"),
            "size": content.len(),
        }))
    }

    fn add_file(&mut self, path: &str, content: &[u8]) -> Result<(), Error> {
        append(&mut self.tar, path, 0o644, content)
    }
}

fn media_type(kind: &str) -> String {
    format!("application/vnd.oci.image.{kind}")
}

fn header(kind: EntryType, mode: u32, size: usize) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_size(u64::try_from(size).unwrap_or(u64::MAX));
    header
}

fn append<W: io::Write>(tar: &mut Builder<W>, path: &str, mode: u32, content: &[u8]) -> Result<(), Error> {
    let mut header = header(EntryType::Regular, mode, content.len());
    tar.append_data(&mut header, path, content).map_err(Error::io(format!("add {path}")))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::io::Read;

    use super::*;

    /// The files of an archive, by their names.
    fn files(archive: impl Read) -> HashMap<String, Vec<u8>> {
        let mut archive = tar::Archive::new(archive);
        let read = |entry: io::Result<tar::Entry<'_, _>>| {
            let mut entry = entry.unwrap();
            let name = entry.path().unwrap().to_string_lossy().into_owned();
            let mut content = Vec::new();
            entry.read_to_end(&mut content).unwrap();
            (name, content)
        };
        archive.entries().unwrap().map(read).collect()
    }

    #[test]
    fn an_archive_holds_each_layer_once_under_its_digest() {
        let base = Layer::new().folder("tmp", 0o1777).text("etc/motd", "hello").link("bin/sh", "busybox");
        let one = Image::new(["a/b:1", "a/b:2"]).layer(base.clone()).entrypoint("/bin/sh");
        let two = Image::new(["a/c:1"]).layer(base).layer(Layer::new().text("x", "y"));
        let path = std::env::temp_dir().join(format!("archive-{}.tar", std::process::id()));
        write_archive(&path, &[one, two]).unwrap();
        let files = files(File::open(&path).unwrap());
        fs::remove_file(&path).unwrap();

        let blobs: Vec<_> = files
            .iter()
            .filter_map(|(name, content)| Some((name.strip_prefix("blobs/sha256/")?, content)))
            .collect();
        // Two manifests, two configs, two layers.
        assert_eq!(blobs.len(), 6);
        for (name, content) in blobs {
            assert_eq!(sha256(content), name);
        }
        let index: Value = serde_json::from_slice(&files["index.json"]).unwrap();
        let manifests = index["manifests"].as_array().unwrap();
        let names: Vec<_> = manifests
            .iter()
            .map(|manifest| manifest["annotations"]["io.containerd.image.name"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["a/b:1", "a/b:2", "a/c:1"]);
        assert_eq!(manifests[0]["digest"], manifests[1]["digest"]);
    }
}
