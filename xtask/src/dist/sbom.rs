//! The bill of materials: a `CycloneDX` document with every third-party package in the programs
//! and in the dashboard.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use anyhow::Result;
use serde_json::{Value, json};

use super::Release;
use super::shipped::{Registry, Shipped};
use crate::process;

pub(super) fn make(release: &Release, shipped: &[Shipped]) -> Result<PathBuf> {
    let sums = checksums(&fs::read_to_string(process::root().join("Cargo.lock"))?);
    let made = release.out.join(format!("lanyard-{}-{}.cdx.json", release.version, release.platform.target));
    let document = document(&release.version, shipped, &sums);
    fs::write(&made, serde_json::to_string_pretty(&document)? + "\n")?;
    Ok(made)
}

fn document(version: &str, shipped: &[Shipped], sums: &BTreeMap<(String, String), String>) -> Value {
    let components: Vec<Value> = shipped.iter().map(|package| component(package, sums)).collect();
    json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": format!("pkg:cargo/lanyard@{version}"),
                "name": "lanyard",
                "version": version,
                "licenses": [{ "expression": "MIT OR Apache-2.0" }],
            },
        },
        "components": components,
    })
}

fn component(package: &Shipped, sums: &BTreeMap<(String, String), String>) -> Value {
    let Shipped { name, version, license, registry, .. } = package;
    let version_part = version.replace('+', "%2B");
    let purl = match registry {
        Registry::Cargo => format!("pkg:cargo/{name}@{version_part}"),
        Registry::Npm => format!("pkg:npm/{}@{version_part}", name.replace('@', "%40")),
    };
    let mut component = json!({
        "type": "library",
        "bom-ref": purl,
        "name": name,
        "version": version,
        "purl": purl,
    });
    if let Some(license) = license {
        // Old manifests have `/` for `OR`.
        component["licenses"] =
            json!([{ "expression": license.replace(" / ", " OR ").replace('/', " OR ") }]);
    }
    if *registry == Registry::Cargo
        && let Some(sum) = sums.get(&(name.clone(), version.clone()))
    {
        component["hashes"] = json!([{ "alg": "SHA-256", "content": sum }]);
    }
    component
}

/// The checksums in a lock file, by name and version.
fn checksums(lock: &str) -> BTreeMap<(String, String), String> {
    let value = |block: &str, key: &str| {
        let line = block.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = \""));
        line.and_then(|rest| rest.strip_suffix('"')).map(str::to_owned)
    };
    let entry =
        |block: &str| Some(((value(block, "name")?, value(block, "version")?), value(block, "checksum")?));
    lock.split("[[package]]").filter_map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_component_has_its_name_licence_and_checksum() {
        let package = json!({
            "id": "x", "name": "a", "version": "1.0.0+b", "license": "MIT/Apache-2.0", "source": "registry",
            "manifest_path": "/x/Cargo.toml",
        });
        let lock = "version = 4\n\n[[package]]\nname = \"a\"\nversion = \"1.0.0+b\"\nsource = \"r\"\nchecksum = \"12ab\"\n";
        let found = component(&serde_json::from_value(package).unwrap(), &checksums(lock));
        assert_eq!(found["purl"], "pkg:cargo/a@1.0.0%2Bb");
        assert_eq!(found["licenses"][0]["expression"], "MIT OR Apache-2.0");
        assert_eq!(found["hashes"][0], json!({ "alg": "SHA-256", "content": "12ab" }));
    }

    #[test]
    fn a_package_of_the_dashboard_is_named_after_its_registry() {
        let package = json!({
            "id": "x", "name": "@a/b", "version": "2.0.0", "license": "MIT", "source": null,
            "manifest_path": "/x/package.json",
        });
        let mut package: Shipped = serde_json::from_value(package).unwrap();
        package.registry = Registry::Npm;
        let sums = BTreeMap::from([(("@a/b".to_owned(), "2.0.0".to_owned()), "12ab".to_owned())]);
        let found = component(&package, &sums);
        assert_eq!(found["purl"], "pkg:npm/%40a/b@2.0.0");
        // The checksums are those of crates.
        assert_eq!(found.get("hashes"), None);
    }
}
