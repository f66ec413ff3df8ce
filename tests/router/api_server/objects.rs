use std::collections::BTreeMap;

use serde_json::{Value, json};

/// One request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) watch: bool,
    /// Who asked, by the header User-Agent.
    pub(crate) agent: String,
}

/// The objects by collection and name, and all that ever happened to them.
#[derive(Default)]
pub(super) struct Objects {
    version: u64,
    objects: BTreeMap<(String, String), Value>,
    /// The version, the collection, and the watch event.
    pub(super) history: Vec<(u64, String, Value)>,
    pub(super) asked: Vec<Asked>,
}

/// An HTTP status and an object.
pub(super) type Answer = Result<Value, (u16, String)>;

fn name_of(object: &Value) -> String {
    object["metadata"]["name"].as_str().unwrap().to_owned()
}

/// The last part of a collection's path.
fn kind_of(collection: &str) -> &str {
    collection.rsplit('/').next().unwrap()
}

impl Objects {
    pub(super) fn get(&self, collection: &str, name: &str) -> Option<Value> {
        self.objects.get(&(collection.to_owned(), name.to_owned())).cloned()
    }

    /// All objects of a kind, whatever their namespace.
    pub(super) fn all(&self, kind: &str) -> Vec<Value> {
        let of_kind = self.objects.iter().filter(|((collection, _), _)| kind_of(collection) == kind);
        of_kind.map(|(_, object)| object.clone()).collect()
    }

    pub(super) fn put(&mut self, collection: &str, mut object: Value) -> Value {
        let key = (collection.to_owned(), name_of(&object));
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let before = self.objects.get(&key);
        let uid =
            before.map_or_else(|| format!("uid-{}", self.version), |before| text(&before["metadata"]["uid"]));
        if object["metadata"]["uid"].is_null() {
            object["metadata"]["uid"] = json!(uid);
        }
        let what = if before.is_some() { "MODIFIED" } else { "ADDED" };
        self.objects.insert(key, object.clone());
        self.note(collection, what, &object);
        object
    }

    pub(super) fn remove(&mut self, collection: &str, name: &str) -> Option<Value> {
        let mut object = self.objects.remove(&(collection.to_owned(), name.to_owned()))?;
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.note(collection, "DELETED", &object);
        Some(object)
    }

    fn note(&mut self, collection: &str, what: &str, object: &Value) {
        let event = json!({"type": what, "object": object});
        self.history.push((self.version, collection.to_owned(), event));
    }

    /// The objects that have the label, and the fields.
    pub(super) fn list(&self, collection: &str, label: Option<&str>, fields: Option<&str>) -> Value {
        let here = self.objects.iter().filter(|((place, _), _)| covers(collection, place));
        let items: Vec<&Value> = here
            .map(|(_, object)| object)
            .filter(|object| selects(label, object) && has_fields(fields, object))
            .collect();
        json!({
            "kind": "List", "apiVersion": "v1",
            "metadata": {"resourceVersion": self.version.to_string()},
            "items": items,
        })
    }

    pub(super) fn create(&mut self, collection: &str, object: Value) -> Answer {
        let name = name_of(&object);
        match self.get(collection, &name) {
            Some(_) => Err((409, format!("{name} already exists"))),
            None => Ok(self.put(collection, object)),
        }
    }

    pub(super) fn replace(&mut self, collection: &str, name: &str, object: Value) -> Answer {
        let found = self.get(collection, name).ok_or_else(|| absent(name))?;
        let read = &object["metadata"]["resourceVersion"];
        if !read.is_null() && *read != found["metadata"]["resourceVersion"] {
            return Err((409, "the object has been modified".to_owned()));
        }
        Ok(self.put(collection, object))
    }

    pub(super) fn patch(&mut self, collection: &str, name: &str, patch: &Value) -> Answer {
        let mut object = self.get(collection, name).ok_or_else(|| absent(name))?;
        merge(&mut object, patch);
        Ok(self.put(collection, object))
    }

    pub(super) fn delete(&mut self, collection: &str, name: &str, options: &Value) -> Answer {
        let found = self.get(collection, name).ok_or_else(|| absent(name))?;
        let uid = &options["preconditions"]["uid"];
        if !uid.is_null() && *uid != found["metadata"]["uid"] {
            return Err((409, "the UID is another".to_owned()));
        }
        self.remove(collection, name);
        Ok(json!({"kind": "Status", "apiVersion": "v1", "status": "Success"}))
    }
}

pub(super) fn absent(name: &str) -> (u16, String) {
    (404, format!("{name} not found"))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Whether a collection is the one that is asked for, or the part of it in one namespace.
pub(super) fn covers(asked: &str, collection: &str) -> bool {
    let parts: Vec<&str> = collection.split('/').collect();
    let everywhere = match parts.iter().position(|part| *part == "namespaces") {
        Some(at) if parts.len() > at + 2 => [&parts[..at], &parts[at + 2..]].concat().join("/"),
        _ => collection.to_owned(),
    };
    collection == asked || everywhere == asked
}

/// Equality and inequality are all that is asked for.
fn has_fields(selector: Option<&str>, object: &Value) -> bool {
    let field =
        |path: &str| path.split('.').fold(object, |value, part| &value[part]).as_str().unwrap_or_default();
    selector.iter().flat_map(|selector| selector.split(',')).all(|part| match part.split_once("!=") {
        Some((path, value)) => field(path) != value,
        None => part.split_once('=').is_some_and(|(path, value)| field(path) == value),
    })
}

/// Equality of one label is all that is asked for.
fn selects(selector: Option<&str>, object: &Value) -> bool {
    let Some((key, value)) = selector.and_then(|selector| selector.split_once('=')) else { return true };
    object["metadata"]["labels"][key] == value
}

/// RFC 7386.
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else { return *target = patch.clone() };
    if !target.is_object() {
        *target = json!({});
    }
    for (key, value) in patch {
        if value.is_null() {
            target.as_object_mut().unwrap().remove(key);
        } else {
            merge(&mut target[key], value);
        }
    }
}
