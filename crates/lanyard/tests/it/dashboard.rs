//! The dashboard's side of the daemon, as a browser meets it: signing in, the cookie, and the pages (S0-51).

mod browser;
mod pages;
mod sign_in;
