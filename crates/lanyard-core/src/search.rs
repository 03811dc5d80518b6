//! Searching conversations by their words: the language of queries, what of an event is searched, and where in a text the
//! words of a query stand. Pure: an index only has to agree with `words` about what a word is.

mod document;
mod mark;
mod query;
mod words;

pub use document::{DOCUMENT_BYTES_MAX, SearchDocument, SearchKind, document};
pub use mark::{SNIPPET_CHARS, Snippet, relevance, snippet};
pub use query::{
    PREFIX_CHARS_MIN, QUERY_CHARS_MAX, QUERY_WORDS_MAX, SearchFilters, SearchPiece, SearchQuery,
    SearchRefusal, SearchTerm,
};
pub use words::{IndexedWords, WORDS_VERSION, indexed_words};
