//! `lanyard hook`: each harness's own JSON in, its dialect out; and putting hooks into settings and taking them out.

mod dialects;
mod install;
