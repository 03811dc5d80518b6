//! A JSON object of which only some members are of interest: the others stay as they were written, in their order.

use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

#[derive(Debug, Default)]
pub(crate) struct Pairs(Vec<(String, Box<RawValue>)>);

impl Pairs {
    /// Nothing when the text is not an object.
    pub(crate) fn read(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    pub(crate) fn get(&self, key: &str) -> Option<&RawValue> {
        self.0.iter().find(|(held, _)| held == key).map(|(_, value)| &**value)
    }

    /// In its old place, or at the end.
    pub(crate) fn set(&mut self, key: &str, value: Box<RawValue>) {
        match self.0.iter_mut().find(|(held, _)| held == key) {
            Some(pair) => pair.1 = value,
            None => self.0.push((key.to_owned(), value)),
        }
    }

    pub(crate) fn remove(&mut self, key: &str) -> Option<Box<RawValue>> {
        let at = self.0.iter().position(|(held, _)| held == key)?;
        Some(self.0.remove(at).1)
    }

    /// As text; nothing when it cannot be written, which values that were read cannot bring about.
    pub(crate) fn raw(&self) -> Option<Box<RawValue>> {
        serde_json::value::to_raw_value(self).ok()
    }
}

impl Serialize for Pairs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, value) in &self.0 {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Pairs;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }
        deserializer.deserialize_map(Object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_nobody_touched_stay_as_they_were_written() {
        let mut pairs = Pairs::read(r#"{"z": 1.0e2, "b": {"x" : [1]}, "a": "\u0041"}"#).unwrap();
        assert_eq!(pairs.remove("none").map(|raw| raw.to_string()), None);
        pairs.set("b", RawValue::from_string("2".to_owned()).unwrap());
        assert_eq!(pairs.raw().unwrap().get(), r#"{"z":1.0e2,"b":2,"a":"\u0041"}"#);
        assert!(Pairs::read("[1]").is_none());
    }
}
