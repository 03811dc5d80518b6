//! Continuity that is measured, and notifications that are handled, as operators and receivers meet them (S3-34 … S3-44).

mod alerts;
mod collected;
mod counted;
mod handled;
mod in_flight;
mod kit;
mod orphans;
mod posted;
mod scraped;
mod switched;
mod turn_ends;
