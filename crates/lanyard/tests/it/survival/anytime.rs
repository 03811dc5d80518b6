//! The daemon dies at any moment, several times in one turn, in a flood of output, in order or of an upgrade.

use std::time::Duration;

use super::kit::{Stage, wait};
use super::story::{SCRIPT, gist, play, went_through};

/// Turns with kills at moments of chance.
const ROUNDS: u64 = 8;
/// A turn of the story takes about this long.
const TURN_MS: u64 = 1_200;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn lane(lane: u64) {
    let seed = number("LANYARD_SURVIVAL_SEED", 20_261_115) + lane;
    eprintln!("repeat with LANYARD_SURVIVAL_SEED={}", seed - lane);
    let mut random = fastrand::Rng::with_seed(seed);
    for round in 0..number("LANYARD_SURVIVAL_ROUNDS", ROUNDS).div_ceil(2) {
        let mut stage = Stage::new();
        let session = stage.started(SCRIPT);
        assert!(wait(|| !stage.run_folders().is_empty()), "the agent was not started");
        let kills = random.u64(1..=4);
        for _ in 0..kills {
            // sleep: any moment of the turn.
            std::thread::sleep(Duration::from_millis(random.u64(0..TURN_MS / kills)));
            stage.up();
        }
        let mut told = play(&mut stage, &session);
        if told.shown["state"] == "interrupted" {
            // Killed before the process was there.
            assert!(stage.pids("pids").is_empty(), "{:#?}", stage.log(&session));
            stage.end();
            continue;
        }
        told.deaths += 1;
        went_through(&mut stage, &session, &told, &format!("lane {lane} round {round}"));
        stage.end();
    }
}

#[test]
fn lane_1_goes_on_after_kills_at_any_moment() {
    lane(0);
}

#[test]
fn lane_2_goes_on_after_kills_at_any_moment() {
    lane(1);
}

/// Every word of a flood is in the log once and in order, however often the daemon dies in it.
#[test]
fn a_flood_of_words_is_kept_whole() {
    const WORDS: usize = 20_000;
    let mut stage = Stage::new();
    let session = stage.started(&format!("/touch began\n/chatter {WORDS} 50\n/say over"));
    stage.until_file("began");
    for _ in 0..4 {
        // sleep: somewhere in the flood.
        std::thread::sleep(Duration::from_millis(150));
        stage.up();
    }
    stage.until_at_rest(&session);
    let gist = gist(&stage, &session);
    let words = gist.iter().find_map(|line| line.strip_prefix("message agent: ")).unwrap();
    let words = words.strip_suffix("over").unwrap();
    assert_eq!(words.len(), WORDS * 50);
    let numbers = words.as_bytes().chunks(50).map(|word| std::str::from_utf8(&word[..8]).unwrap());
    let numbers: Vec<usize> = numbers.map(|number| number.parse().unwrap()).collect();
    assert!(numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]), "lost, repeated or out of order");
    assert_eq!(gist.last().unwrap(), "turn.finished: completed");
    stage.end();
}

#[test]
fn a_daemon_that_ends_in_order_leaves_the_agent_at_work() {
    let mut stage = Stage::new();
    let session = stage.started(SCRIPT);
    stage.until_asked(&session);
    assert!(stage.daemon.terminate().success());
    let agent = stage.agent();
    stage.up();
    assert_eq!(stage.agent(), agent);
    let mut told = play(&mut stage, &session);
    told.deaths += 1;
    went_through(&mut stage, &session, &told, "down and up");
    stage.end();
}

#[test]
fn an_upgrade_leaves_the_agent_at_work() {
    let mut stage = Stage::new();
    let session = stage.started(SCRIPT);
    stage.until_asked(&session);
    let newer = stage.folder().join("lanyard-newer");
    // By a process of its own: a file this one has open for writing could not be started.
    let copied = std::process::Command::new("cp").arg(crate::support::binary()).arg(&newer).status().unwrap();
    assert!(copied.success());
    stage.up_as(&newer);
    let mut told = play(&mut stage, &session);
    told.deaths += 1;
    went_through(&mut stage, &session, &told, "upgrade");
    stage.end();
}
