//! The table of refusals: [`refusals!`](crate::refusals) makes an enum of rows with a stable code, a kind, a sentence of
//! what happened and an advice of what to do.
//!
//! The codes are public and never change once published. `docs/refusals.md` is made from the tables.

/// The party that must change something before the same request can succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RefusalKind {
    /// The request cannot be read.
    Malformed,
    /// The caller is not known.
    Unauthorized,
    /// The caller is known and may not do this.
    Forbidden,
    NotFound,
    /// The moment is wrong, not the request.
    Conflict,
    /// The record was deleted.
    Gone,
    /// The request itself is at fault.
    Invalid,
    /// A defect of Lanyard.
    Defect,
    /// The daemon or its disk cannot do it now.
    Unavailable,
}

/// Defines an enum of refusals as a table. A row is
///
/// ```text
/// Variant { field: Type } => "code", Kind ("sentence") ("advice");
/// ```
///
/// The enum derives `thiserror::Error`. The sentence is `thiserror`'s and the advice is `format!`'s; both may name the fields. A field in parentheses,
/// `Variant(name: Type)`, is `{0}` in the sentence. `agents ("advice")` at the end of a row is the advice for agents'
/// tools where it differs. Variants under `via` pass on another table's refusal.
#[macro_export]
macro_rules! refusals {
    (@told $this:tt) => {
        $this.advice()
    };
    (@told $this:tt $told:tt) => {
        ::std::fmt::format(::core::format_args! $told)
    };
    (
        $(#[$meta:meta])*
        $vis:vis enum $name:ident {
            $(
                $(#[$doc:meta])*
                $variant:ident
                $( { $( $(#[$note:meta])* $field:ident : $type:ty ),* $(,)? } )?
                $( ( $(#[$link:meta])* $only:ident : $tuple:ty ) )?
                => $code:expr, $kind:ident $sentence:tt $advice:tt $( agents $told:tt )? ;
            )*
        }
        $( via { $( $inner:ident ( $(#[$from:meta])* $table:ty ) ),* $(,)? } )?
    ) => {
        $(#[$meta])*
        $vis enum $name {
            $(
                $(#[$doc])*
                #[error $sentence]
                $variant $( { $( $(#[$note])* $field : $type ),* } )? $( ( $(#[$link])* $tuple ) )?,
            )*
            $( $(
                #[error("{0}")]
                $inner ( $(#[$from])* $table ),
            )* )?
        }

        impl $name {
            /// The code clients branch on. It never changes once published.
            #[must_use]
            $vis fn code(&self) -> &'static str {
                match self {
                    $( Self::$variant $( { $( $field ),* } )? $( ( $only ) )? => {
                        $( $( let _ = $field; )* )? $( let _ = $only; )?
                        $code
                    } )*
                    $( $( Self::$inner(refusal) => refusal.code(), )* )?
                }
            }

            /// The party that must change something.
            #[must_use]
            $vis fn kind(&self) -> $crate::refusal::RefusalKind {
                match self {
                    $( Self::$variant { .. } => $crate::refusal::RefusalKind::$kind, )*
                    $( $( Self::$inner(refusal) => refusal.kind(), )* )?
                }
            }

            /// One sentence of what to do.
            #[must_use]
            $vis fn advice(&self) -> String {
                match self {
                    $( Self::$variant $( { $( $field ),* } )? $( ( $only ) )? => {
                        $( $( let _ = $field; )* )? $( let _ = $only; )?
                        ::std::fmt::format(::core::format_args! $advice)
                    } )*
                    $( $( Self::$inner(refusal) => refusal.advice(), )* )?
                }
            }

            /// The advice where the caller is an agent.
            #[must_use]
            $vis fn tool_advice(&self) -> String {
                match self {
                    $( Self::$variant { .. } => $crate::refusals!(@told self $( $told )?), )*
                    $( $( Self::$inner(refusal) => refusal.tool_advice(), )* )?
                }
            }
        }
    };
}
