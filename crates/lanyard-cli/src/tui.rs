//! Screens in a terminal: `lanyard attach` and `lanyard top`. A screen is a model that takes messages and answers with
//! things to do; drawing reads the model and changes nothing. Only `stage` and `term` touch the world.

pub(crate) mod attach;
pub(crate) mod directory;
pub(crate) mod face;
pub(crate) mod input;
pub(crate) mod key;
pub(crate) mod message;
pub(crate) mod paint;
pub(crate) mod pick;
pub(crate) mod stage;
pub(crate) mod term;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod top;
pub(crate) mod transcript;
