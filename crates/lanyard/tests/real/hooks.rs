//! Real agents that Lanyard does not run, in a home of their own, with the hooks of `lanyard hook install`: what of the
//! operator's words and of a stop reaches their model, and what their harness makes of it.
//!
//! Every agent goes through the same chapters. What one cannot do is asserted as such and told as `not offered` in the
//! table that `cargo xtask test real --only hooks` prints at the end; docs/hooks.md says what is shown here.

mod cases;
mod edges;
mod family;
mod guidance;
mod kit;
mod settings;
mod stop;

use self::cases::Case;

macro_rules! chapters {
    ($agent:ident, $case:path) => {
        mod $agent {
            #[test]
            fn is_found_and_gets_words_beside_a_tools_answer() {
                super::guidance::beside_a_tool(&$case());
            }

            #[test]
            fn gets_words_with_a_prompt_or_not() {
                super::guidance::with_a_prompt(&$case());
            }

            #[test]
            fn is_told_then_denied_then_ended() {
                super::stop::ladder(&$case());
            }

            #[test]
            fn fnd_r1_is_told_each_level_although_the_config_has_its_name() {
                super::stop::named(&$case());
            }

            #[test]
            fn is_stopped_at_once_while_a_tool_works() {
                super::stop::at_once(&$case());
            }

            #[test]
            fn shows_its_subagents_or_not() {
                super::family::shows(&$case());
            }

            #[test]
            fn works_on_without_a_daemon() {
                super::edges::without_a_daemon(&$case());
            }

            #[test]
            fn gets_its_settings_back() {
                super::settings::come_back(&$case());
            }
        }
    };
}

chapters!(claude, super::Case::claude);
chapters!(gemini, super::Case::gemini);
chapters!(codex, super::Case::codex);
chapters!(opencode, super::Case::opencode);
