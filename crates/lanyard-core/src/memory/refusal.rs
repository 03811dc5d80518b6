//! Why something about memory was not done: a stable code, what happened, what to do.

use crate::memory::admit::Rule;
use crate::memory::tag::TAG_CHARS_MAX;
use crate::refusals;

refusals! {
    #[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
    pub enum MemoryRefusal {
        BadTag { tag: String } => "memory_tag_bad", Invalid
            ("`{tag}` cannot be a tag")
            ("use letters, digits and - _ . : / +, at most {TAG_CHARS_MAX} characters");
        Empty { field: &'static str } => "field_empty", Invalid
            ("{field} is empty") ("give at least one visible character");
        TooLong { field: &'static str, max: usize } => "field_too_long", Invalid
            ("{field} has more than {max} characters") ("shorten it; put long content into a file");
        TooMany { field: &'static str, max: usize } => "field_too_many", Invalid
            ("{field} has more than {max} entries") ("send fewer");
        BadText { field: &'static str } => "field_bad_text", Invalid
            ("{field} holds a control character or a line break")
            ("write it on one line, without control characters");
        Wider { of: &'static str } => "memory_policy_wider", Conflict
            ("the memory policy would allow more than {of} does")
            ("a policy is only ever tightened below; ask for less, or widen the one above first");
    }
    via { Forbidden(Rule) }
}
