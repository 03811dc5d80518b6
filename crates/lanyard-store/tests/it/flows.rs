//! Flows: written whole or not at all, found by every condition, read in order.

use lanyard_core::FlowId;
use lanyard_core::flow::{Choice, Flow, FlowEvent};
use lanyard_store::{AppendError, FlowBatch, FlowFilter};

use crate::conductor::{Conductor, plain};
use crate::foreman::{self, Foreman};
use crate::kit::{Store, WriteRecords, on_every_journal};

on_every_journal! {
    flows_are_there_as_they_were_told
    nothing_is_known_of_a_flow_that_was_never_written
    a_gap_or_a_repeat_in_a_flows_log_writes_nothing
    a_flows_row_is_there_with_its_events_and_as_of_the_last
    flows_are_found_by_each_condition_and_by_all
    flows_are_listed_in_pages_newest_first
    a_flows_log_is_read_in_pages
    flows_and_tasks_do_not_disturb_each_other
    rebuilding_flows_changes_nothing
}

/// S2-B01: what was acknowledged, an open gate among it, can be read at once.
fn flows_are_there_as_they_were_told(store: &dyn Store) {
    let mut conductor = Conductor::default();
    let one = conductor.create(plain("/w/one.md"));
    let two = conductor.create(plain("/w/two.md"));
    conductor.write(store);
    conductor.assert_kept(store);
    conductor.work_at(one);
    conductor.ask(two);
    conductor.end(one);
    conductor.settle(one);
    conductor.write(store);
    conductor.assert_kept(store);
    assert!(store.flow(two).unwrap().unwrap().gate.unwrap().is_open());
    conductor.answer(two, Choice::ContinueSession);
    conductor.write(store);
    store.write_flows(&FlowBatch::default()).unwrap();
    conductor.assert_kept(store);
    assert_eq!(store.check().unwrap().damage, []);
}

fn nothing_is_known_of_a_flow_that_was_never_written(store: &dyn Store) {
    let nobody = FlowId::from_u128(7);
    assert_eq!(store.flow(nobody).unwrap(), None);
    assert_eq!(store.flow_events(nobody, 0, 10).unwrap(), []);
    assert_eq!(store.flows(&FlowFilter::default(), None, 10).unwrap(), []);
    assert_eq!(store.flows(&FlowFilter::default(), Some(nobody), 10).unwrap(), []);
}

fn assert_contradicts(store: &dyn Store, batch: &FlowBatch, kept: &Conductor, what: &str) {
    let refused = store.write_flows(batch);
    assert!(matches!(refused, Err(AppendError::Contradiction(_))), "{what}: {refused:?}");
    kept.assert_kept(store);
}

/// S2-B05: of two who drive one flow, the one whose numbers are no longer the next writes nothing.
fn a_gap_or_a_repeat_in_a_flows_log_writes_nothing(store: &dyn Store) {
    let mut conductor = Conductor::default();
    let flow = conductor.create(plain("/w/one.md"));
    conductor.write(store);
    let kept = conductor.clone();
    // Each also has what could be written by itself.
    let other = conductor.create(plain("/w/other.md"));
    conductor.lease(flow);
    conductor.invoke(flow);
    let good = conductor.batch();
    let mut gap = good.clone();
    gap.entries.retain(|entry| entry.flow != flow || entry.seq != 2);
    assert_contradicts(store, &gap, &kept, "a gap");
    let mut unborn = good.clone();
    unborn.entries.retain(|entry| entry.flow != other);
    assert_contradicts(store, &unborn, &kept, "a row without events");
    let mut disorder = good.clone();
    disorder.entries.reverse();
    assert_contradicts(store, &disorder, &kept, "the wrong order");
    assert_eq!(store.flow(other).unwrap(), None);
    store.write_flows(&good).unwrap();
    conductor.assert_kept(store);
    assert_contradicts(store, &good, &conductor, "a repeat");
    let mut late = kept.clone();
    late.end(flow);
    assert_contradicts(store, &late.batch(), &conductor, "what another one wrote in the meantime");
}

fn a_flows_row_is_there_with_its_events_and_as_of_the_last(store: &dyn Store) {
    let mut conductor = Conductor::default();
    let flow = conductor.create(plain("/w/one.md"));
    conductor.write(store);
    let kept = conductor.clone();
    conductor.lease(flow);
    let good = conductor.batch();
    assert_contradicts(store, &FlowBatch { flows: Vec::new(), ..good.clone() }, &kept, "no row");
    let early = vec![kept.flows[&flow].clone()];
    assert_contradicts(store, &FlowBatch { flows: early, ..good.clone() }, &kept, "an earlier row");
    assert_contradicts(store, &FlowBatch { entries: Vec::new(), ..good.clone() }, &kept, "a later row");
    store.write_flows(&good).unwrap();
    conductor.assert_kept(store);
}

/// Flows that differ in everything a filter asks for.
fn variety(conductor: &mut Conductor) {
    for number in 0..24 {
        let mut new = plain(&format!("/w/{}.md", number % 5));
        new.workspace = format!("/w/{}", number % 3);
        let flow = conductor.create(new);
        match number % 8 {
            1 => conductor.lease(flow),
            2 => conductor.ask(flow),
            3 => conductor.work_at(flow),
            4 => conductor.end(flow),
            5 | 6 => {
                conductor.end(flow);
                conductor.settle(flow);
            }
            7 => {
                conductor.end(flow);
                conductor.settle(flow);
                conductor.push(flow, FlowEvent::Resumed {});
            }
            _ => {}
        }
    }
}

fn flows_are_found_by_each_condition_and_by_all(store: &dyn Store) {
    let mut conductor = Conductor::default();
    variety(&mut conductor);
    conductor.write(store);
    let all: Vec<Flow> = conductor.flows.values().rev().cloned().collect();
    let either = [None, Some(false), Some(true)];
    let mut found_by_all = 0;
    for number in 0..6 {
        let (plan, workspace) = (Some(format!("/w/{number}.md")), Some(format!("/w/{number}")));
        for (plan, workspace) in
            [(None, None), (plan.clone(), None), (None, workspace.clone()), (plan, workspace)]
        {
            for (ended, settled) in
                either.into_iter().flat_map(|ended| either.map(|settled| (ended, settled)))
            {
                let filter = FlowFilter { plan: plan.clone(), workspace: workspace.clone(), ended, settled };
                let expected: Vec<&Flow> = all.iter().filter(|flow| meets(flow, &filter)).collect();
                let found = store.flows(&filter, None, 100).unwrap();
                assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{filter:?}");
                found_by_all += usize::from(plan.is_some() && workspace.is_some()) * found.len();
            }
        }
    }
    assert!(found_by_all > 10, "the conditions are not empty together");
}

/// Told once more, so that the store's own way of comparing is not compared with itself.
fn meets(flow: &Flow, filter: &FlowFilter) -> bool {
    let FlowFilter { plan, workspace, ended, settled } = filter;
    (plan.is_none() || *plan == Some(flow.plan.clone()))
        && (workspace.is_none() || *workspace == Some(flow.workspace.clone()))
        && (ended.is_none() || *ended == Some(flow.state.is_ended()))
        && (settled.is_none() || *settled == Some(flow.settled))
}

fn flows_are_listed_in_pages_newest_first(store: &dyn Store) {
    let mut conductor = Conductor::default();
    variety(&mut conductor);
    conductor.write(store);
    let open = FlowFilter { ended: Some(false), ..FlowFilter::default() };
    let unsettled = FlowFilter { settled: Some(false), ..FlowFilter::default() };
    let there = FlowFilter { workspace: Some("/w/1".to_owned()), ..FlowFilter::default() };
    for filter in [FlowFilter::default(), open, unsettled, there] {
        let whole = store.flows(&filter, None, usize::MAX).unwrap();
        assert!(whole.len() >= 8 && whole.is_sorted_by(|one, other| one.id > other.id));
        for size in [1, 3, 10] {
            let mut read: Vec<Flow> = Vec::new();
            loop {
                let page = store.flows(&filter, read.last().map(|flow| flow.id), size).unwrap();
                let last = page.len() < size;
                read.extend(page);
                if last {
                    break;
                }
            }
            assert_eq!(read, whole);
        }
        assert_eq!(store.flows(&filter, None, 0).unwrap(), []);
    }
}

fn a_flows_log_is_read_in_pages(store: &dyn Store) {
    let mut conductor = Conductor::default();
    let (flow, other) = (conductor.create(plain("/w/one.md")), conductor.create(plain("/w/two.md")));
    conductor.work_at(flow);
    conductor.work_at(other);
    conductor.write(store);
    let log = &conductor.logs[&flow];
    for after in 0..=log.len() {
        for limit in 0..=log.len() {
            let page = store.flow_events(flow, after as u64, limit).unwrap();
            assert_eq!(page, log[after..(after + limit).min(log.len())]);
        }
    }
}

fn flows_and_tasks_do_not_disturb_each_other(store: &dyn Store) {
    let (mut conductor, mut foreman) = (Conductor::default(), Foreman::default());
    let (flow, task) = (conductor.create(plain("/w/one.md")), foreman.create(foreman::plain("one")));
    conductor.write(store);
    foreman.write(store);
    conductor.work_at(flow);
    foreman.work_at(task, 1);
    foreman.write(store);
    conductor.write(store);
    store.rebuild().unwrap();
    conductor.assert_kept(store);
    foreman.assert_kept(store);
    assert_eq!(store.check().unwrap().damage, []);
}

fn rebuilding_flows_changes_nothing(store: &dyn Store) {
    let mut conductor = Conductor::default();
    variety(&mut conductor);
    let flow = conductor.create(plain("/w/last.md"));
    conductor.ask(flow);
    conductor.write(store);
    store.rebuild().unwrap();
    conductor.assert_kept(store);
    assert_eq!(store.check().unwrap().damage, []);
    conductor.answer(flow, Choice::Abort);
    conductor.write(store);
    conductor.assert_kept(store);
}
