//! The place packages are published, and their publisher. There is none yet: these are placeholders, and the only ones.

/// Scope of the platform packages on npm.
pub(super) const NPM_SCOPE: &str = "@lanyard";
/// Maintainer of the Debian package. `.invalid` is reserved: it is never an address.
pub(super) const MAINTAINER: &str = "Lanyard maintainers <maintainers@lanyard.invalid>";
