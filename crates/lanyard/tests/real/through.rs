//! Real agents driven by Lanyard: a real daemon, its drivers, a shim for each run, and the scripted model behind.
//!
//! Every agent goes through the same chapters. What one cannot do is asserted as such and told as `not offered` in the
//! table that `cargo xtask test real` prints at the end.

mod abilities;
mod apart;
mod background;
mod breaks;
mod cancel;
mod cases;
mod entry;
mod family;
mod files;
mod flow;
mod gateway;
mod hub;
mod kit;
mod permission;
mod processes;
mod start;
mod steer;
pub(crate) mod tally;

use self::cases::Case;

macro_rules! chapters {
    ($agent:ident, $case:path) => {
        mod $agent {
            #[test]
            fn starts_talks_runs_a_tool_and_stops() {
                super::start::shows(&$case());
            }

            #[test]
            fn asks_and_is_allowed_or_denied() {
                super::permission::shows(&$case());
            }

            #[test]
            fn is_cancelled_in_mid_stream_and_goes_on() {
                super::cancel::shows(&$case());
            }

            /// FND-R3.
            #[test]
            fn fnd_r3_its_commands_end_with_its_turn() {
                super::cancel::commands(&$case());
            }

            /// FND-R3.
            #[test]
            fn fnd_r3_a_program_without_a_shell_ends_with_its_turn() {
                super::cancel::lone(&$case());
            }

            #[test]
            fn shows_its_first_words_at_once_or_not() {
                super::abilities::partial(&$case());
            }

            #[test]
            fn tells_what_its_tools_do() {
                super::abilities::tools(&$case());
            }

            #[test]
            fn gets_words_by_its_hook_or_not() {
                super::abilities::by_hook(&$case());
            }

            #[test]
            fn has_its_subagent_ended_alone_or_says_why_not() {
                super::abilities::child_stop(&$case());
            }

            #[test]
            fn compacts_when_asked_or_says_why_not() {
                super::abilities::compact(&$case());
            }

            #[test]
            fn takes_a_picture_or_its_path() {
                super::abilities::images(&$case());
            }

            #[test]
            fn works_with_a_chosen_model_or_refuses_it() {
                super::abilities::models(&$case());
            }

            #[test]
            fn works_in_a_chosen_mode_or_refuses_it() {
                super::abilities::modes(&$case());
            }

            #[test]
            fn takes_commands_of_its_own_or_says_why_not() {
                super::abilities::commands(&$case());
            }

            #[test]
            fn goes_on_when_the_daemon_is_killed_in_mid_turn() {
                super::breaks::daemon(&$case());
            }

            #[test]
            fn fnd_r10_goes_on_when_the_daemon_goes_in_a_call() {
                super::breaks::call(&$case());
            }

            #[test]
            fn fnd_r10_has_its_tools_when_the_daemon_is_killed_at_its_start() {
                super::breaks::start(&$case());
            }

            #[test]
            fn is_resumed_after_it_was_killed() {
                super::breaks::agent(&$case());
            }

            #[test]
            fn shows_its_subagents() {
                super::family::shows(&$case());
            }

            #[test]
            fn keeps_two_sessions_in_one_folder_apart() {
                super::apart::shows(&$case());
            }

            #[test]
            fn takes_words_while_it_works() {
                super::steer::shows(&$case());
            }

            #[test]
            fn gets_words_in_a_result_from_the_gateway() {
                super::gateway::guidance(&$case());
            }

            #[test]
            fn fnd_r2_keeps_its_words_from_a_subagent_on_the_same_connection() {
                super::gateway::shared(&$case());
            }

            #[test]
            fn is_stopped_in_its_results_by_the_gateway() {
                super::gateway::stop(&$case());
            }
        }
    };
}

chapters!(opencode, super::Case::opencode);
chapters!(opencode_acp, super::Case::opencode_acp);
chapters!(codex, super::Case::codex);
chapters!(codex_acp, super::Case::codex_acp);
chapters!(codex_exec, super::Case::codex_exec);
chapters!(claude, super::Case::claude);
chapters!(claude_entry, super::Case::claude_entry);
chapters!(claude_asks, super::Case::claude_asks);
chapters!(claude_acp, super::Case::claude_acp);
chapters!(gemini, super::Case::gemini);

/// FND-R6: Gemini CLI creates no file when reading is offered to it.
#[test]
fn fnd_r6_gemini_creates_a_file() {
    files::creates_one(&Case::gemini());
}

#[test]
fn opencode_thinks_as_hard_as_is_chosen() {
    abilities::effort(&Case::opencode());
}

#[test]
fn opencode_hears_of_the_tasks_it_spawned() {
    hub::shows(&Case::opencode());
}

#[test]
fn codex_hears_of_the_tasks_it_spawned() {
    hub::shows(&Case::codex());
}

#[test]
fn opencode_is_gone_on_with_at_a_gate_of_its_flow() {
    flow::shows(&Case::opencode());
}

#[test]
fn opencode_is_gone_on_with_after_it_took_too_long() {
    flow::takes_too_long(&Case::opencode());
}

#[test]
fn opencode_is_not_offered_to_go_on_when_it_cannot() {
    flow::is_not_offered(&Case::opencode());
}

/// FND-R13.
#[test]
fn fnd_r13_codex_commits_in_the_worktree_of_a_flow() {
    flow::commits(&Case::codex_sandboxed());
}

/// FND-R4, FND-R5.
#[test]
fn fnd_r4_fnd_r5_claude_does_a_task_with_the_entry_of_init() {
    entry::does_a_task(&Case::claude_entry());
}

/// FND-R4.
#[test]
fn fnd_r4_claude_that_cannot_ask_says_what_it_denied() {
    entry::tells_denials(&Case::claude_old_guide());
}

/// FND-R5.
#[test]
fn fnd_r5_no_agent_is_told_of_a_session_id_for_its_tools() {
    for case in [Case::opencode(), Case::codex(), Case::claude_entry(), Case::gemini()] {
        entry::asks_for_no_session_id(&case);
    }
}

#[test]
fn claude_ends_a_turn_after_its_subagents_in_the_background() {
    background::shows(&Case::claude_entry());
}

#[test]
fn claude_answers_words_that_came_after_its_last_request() {
    steer::late(&Case::claude_entry());
}

/// FND-R9.
#[test]
fn fnd_r9_claude_knows_the_conversation_or_the_log_says_that_it_does_not() {
    entry::knows_the_past();
}

/// FND-R15.
#[test]
fn fnd_r15_a_check_of_claude_says_what_its_run_says() {
    entry::checks(&Case::claude_entry());
}
