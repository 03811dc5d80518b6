//! Plans as people write them and as they are written back.

use expect_test::{Expect, expect};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::*;

fn check(text: &str, expect: &Expect) {
    expect.assert_eq(&shown(text));
}

/// The plan as it is written, or what is wrong with the text.
fn shown(text: &str) -> String {
    match read(text) {
        Ok(plan) => write(&plan),
        Err(error) => format!("{error}\n{}: {}\n", error.what.code(), error.what.advice()),
    }
}

#[test]
fn what_is_written_is_read_back() {
    let text = "\
# Rewrite the parser

The old one is slow.

It also *leaks*.

## [x] lexer: Write the lexer

## [ ] parser: Write the parser

- agent: codex
- part of: lexer
- after: lexer
- priority: high
- group: front
- files: src/parser.rs, src/ast/**
- base: main
- isolation: worktree
- when parent ends: cancel
- may spawn: yes
- may change: src/**, docs
- must not change: Cargo.lock
- out of scope: `the old parser, wherever it is`, speed

Read `src/lexer.rs` first.

- then this
- [ ] and that
";
    let plan = read(text).unwrap();
    assert_eq!(write(&plan), text);
    assert_eq!(plan.goal.as_deref(), Some("The old one is slow.\n\nIt also *leaks*."));
    assert_eq!((plan.tasks[0].prompt.as_str(), plan.tasks[0].done), ("Write the lexer", true));
    let parser = TaskText {
        key: "parser".to_owned(),
        title: "Write the parser".to_owned(),
        prompt: "Read `src/lexer.rs` first.\n\n- then this\n- [ ] and that".to_owned(),
        agent: Some("codex".to_owned()),
        depends_on: vec!["lexer".to_owned()],
        priority: Priority::High,
        group: Some("front".to_owned()),
        files: vec!["src/parser.rs".to_owned(), "src/ast/**".to_owned()],
        base: Some("main".to_owned()),
        isolation: Isolation::Worktree,
        when_parent_ends: ParentEnd::Cancel,
        parent: Some("lexer".to_owned()),
        may_spawn: true,
        subagents: false,
        bounds: Bounds {
            may_change: vec!["src/**".to_owned(), "docs".to_owned()],
            must_not_change: vec!["Cargo.lock".to_owned()],
            out_of_scope: vec!["the old parser, wherever it is".to_owned(), "speed".to_owned()],
        },
        done: false,
    };
    assert_eq!(plan.tasks[1], parser);
}

#[test]
fn a_prompt_with_headings_and_fences_stands_between_fences() {
    let prompt = "## Context\n\n```sh\nmake\n```\n\n## [ ] not: a task\n";
    let task = TaskText {
        key: "a key, with: everything `in` it".to_owned(),
        title: "T".to_owned(),
        prompt: prompt.to_owned(),
        files: vec!["a, b".to_owned(), " c".to_owned(), "`".to_owned()],
        ..TaskText::default()
    };
    let goal = Some("# not a title".to_owned());
    let plan = PlanText { title: "P".to_owned(), goal, tasks: vec![task], steps: None };
    let text = write(&plan);
    expect![[r"
        # P

        ```goal
        # not a title
        ```

        ## [ ] ``a key, with: everything `in` it``: T

        - files: `a, b`, `  c `, `` ` ``

        ````prompt
        ## Context

        ```sh
        make
        ```

        ## [ ] not: a task

        ````
    "]]
    .assert_eq(&text);
    assert_eq!(read(&text), Ok(plan));
}

#[test]
fn headings_without_boxes_are_tasks() {
    check(
        "# P\r\n\r\n## Set up the database\r\n\r\n### Why\r\nBecause.\r\n## api: Write the API\r\n* after: Set up the database\r\nText.\r\n",
        &expect![[r"
            # P

            ## [ ] set-up-the-database: Set up the database

            ```prompt
            ### Why
            Because.
            ```

            ## [ ] api: Write the API

            - after: set-up-the-database

            Text.
        "]],
    );
}

#[test]
fn checklists_are_read_with_their_parts_and_groups() {
    check(
        "\
# Release

Everything for 1.0.

## Phase one
- [ ] Write the docs
    - agent: claude
    - priority: high

    In plain words:
      - short
      - true

    ```
- [ ] not a task
    ```
    - [x] intro: Write the introduction
    - [ ] Write the docs
- [x] Tag it
## Phase two

Only after all that.

1. [ ] Ship
   - after: tag-it, intro
   - Note: on a Monday
",
        &expect![[r"
            # Release

            Everything for 1.0.

            Only after all that.

            ## [ ] write-the-docs: Write the docs

            - agent: claude
            - priority: high
            - group: Phase one

            ````prompt
            In plain words:
              - short
              - true

            ```
            - [ ] not a task
            ```
            ````

            ## [x] intro: Write the introduction

            - part of: write-the-docs
            - group: Phase one

            ## [ ] write-the-docs-2: Write the docs

            - part of: write-the-docs
            - group: Phase one

            ## [x] tag-it: Tag it

            - group: Phase one

            ## [ ] ship: Ship

            - after: tag-it, intro
            - group: Phase two

            ```prompt
            - Note: on a Monday
            ```
        "]],
    );
}

const WRONG: [&str; 19] = [
    "",
    "\n\n- [ ] no title",
    "#\n",
    "# P\n\nonly words\n",
    "# P\n## [ ] a: A\n\n## Notes\n",
    "# P\n## [ ] a: A\n- agnt: codex\n",
    "# P\n## [ ] a: A\n- agent: x\n- agent: y\n",
    "# P\n## [ ] a: A\n- agent:\n",
    "# P\n## [ ] a: A\n- priority: urgent\n",
    "# P\n## [ ] a: A\n- may spawn: perhaps\n",
    "# P\n## [ ] a: A\n## [ ] a: B\n",
    "# P\n## [ ] a: A\n- after: b\n",
    "# P\n## [ ] a: A\n- part of: b\n",
    "# P\n## [ ] z: Z\n## [ ] a: A\n- after: b\n## [ ] b: B\n- after: a\n",
    "# P\n## [ ] a: A\n- part of: a\n",
    "# P\n## [ ]\n",
    "# P\n## [ ] a: A\n```\n## [ ] b: B\n",
    "# P\n## [ ] a: A\n```prompt\nx\n```\nmore\n",
    "# P\n- [ ] a\nnot indented\n",
];

#[test]
fn what_is_wrong_is_said_with_its_line() {
    expect![[r"
        line 1: the plan has no title
        plan_without_title: begin with a line `# Title`
        line 3: the plan has no title
        plan_without_title: begin with a line `# Title`
        line 1: title is empty
        field_empty: give at least one visible character
        line 4: there is no task
        plan_without_tasks: write a heading `## [ ] key: Title` or an item `- [ ] Title` for each task
        line 4: this heading has no box, others have
        plan_heading_without_box: write `## [ ] key: Title` if it is a task, or use `###` if it is a part of the text above
        line 3: there is no field `agnt`
        plan_unknown_field: use one of `agent`, `part of`, `after`, `priority`, `group`, `files`, `base`, `isolation`, `when parent ends`, `may spawn`, `may change`, `must not change`, `out of scope`; begin with a capital what is no field
        line 4: the field `agent` is there twice
        plan_field_twice: write all of it into one line
        line 3: agent is empty
        field_empty: give at least one visible character
        line 3: `urgent` is not a value of `priority`
        plan_bad_value: use `low`, `normal`, `high` or `critical`
        line 3: `perhaps` is not a value of `may spawn`
        plan_bad_value: use `yes`, `no` or `subagents`
        line 3: the key `a` is that of another task
        plan_key_twice: give each task a key of its own, as in `key: Title`
        line 3: there is no task `b`
        plan_unknown_key: write the key as it stands before that task's title
        line 3: there is no task `b`
        plan_unknown_key: write the key as it stands before that task's title
        line 3: the tasks `a`, `b` depend on each other in a circle
        dependency_cycle: take one of the dependencies away
        line 2: the tasks `a` depend on each other in a circle
        dependency_cycle: take one of the dependencies away
        line 2: title is empty
        field_empty: give at least one visible character
        line 3: a code block begins here and does not end
        plan_open_block: end it with a line of the same marks
        line 6: there is text after the end of the `prompt` block
        plan_text_after_block: move the text into the block
        line 3: this text belongs to no task
        plan_stray_text: indent it below the task it belongs to, or put it before the first one
    "]]
    .assert_eq(&WRONG.map(shown).concat());
}

#[test]
fn what_is_too_much_is_said_with_its_line() {
    let texts = [
        format!("# P\n## [ ] a: {}\n", "x".repeat(201)),
        format!("# P\n## [ ] a: A\n{}\n", "x".repeat(100_001)),
        format!("# P\n{}", "- [ ] x\n".repeat(501)),
        format!("# P\n- [ ] x\n  - files: {}\n", "f,".repeat(201)),
    ];
    let shown: Vec<String> = texts.iter().map(|text| shown(text)).collect();
    expect![[r"
        line 2: title has more than 200 characters
        field_too_long: shorten it; put long content into a file
        line 3: prompt has more than 100000 characters
        field_too_long: shorten it; put long content into a file
        line 502: there are more than 500 tasks
        plan_too_many_tasks: make several plans of it
        line 3: files has more than 200 entries
        field_too_many: send fewer, or split them over two plans
    "]]
    .assert_eq(&shown.concat());
    assert_eq!(read(&"x".repeat(BYTES_MAX + 1)).unwrap_err().what.code(), "plan_too_large");
}

/// One line that begins and ends with something one can see.
fn name() -> impl Strategy<Value = String> {
    let letter = prop_oneof![
        4 => prop::sample::select(vec!['a', 'B', '1', '-', '_', '.', ':', ',', '`', '#', '[', ']', 'x', ' ', '*', '~']),
        1 => any::<char>(),
    ];
    vec(letter, 1..12).prop_filter_map("a name", |letters| {
        let text: String = letters.into_iter().filter(|letter| !letter.is_control()).collect();
        let text = text.trim().to_owned();
        (!text.is_empty()).then_some(text)
    })
}

/// Lines that look like something.
fn words() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        prop::sample::select(vec![
            "\n",
            "\n\n",
            "\r\n",
            "\r",
            " ",
            "    ",
            "\t",
            "## ",
            "# ",
            "### ",
            "## [ ] a: b",
            "- [ ] ",
            "- [x] a: ",
            "- ",
            "* ",
            "1. ",
            "agent: ",
            "- agent: x",
            "- after: a",
            "```",
            "````",
            "~~~",
            "```prompt",
            "```goal",
            "`",
            "a",
            ":",
            "\u{feff}",
            "ä",
            "\0",
        ])
        .prop_map(str::to_owned),
        ".{0,6}",
    ];
    vec(piece, 1..14).prop_map(|pieces| pieces.concat())
}

fn said() -> impl Strategy<Value = String> {
    words().prop_filter("something is said", |text| !text.trim().is_empty())
}

fn task() -> impl Strategy<Value = (TaskText, Vec<prop::sample::Index>, Option<prop::sample::Index>)> {
    let named = (name(), name(), said(), option::of(name()), option::of(name()), option::of(name()));
    let chosen = (
        prop::sample::select(vec![Priority::Low, Priority::Normal, Priority::High, Priority::Critical]),
        prop::sample::select(vec![Isolation::Auto, Isolation::Worktree, Isolation::Shared]),
        prop::sample::select(vec![ParentEnd::Wait, ParentEnd::Adopt, ParentEnd::Cancel]),
        prop::sample::select(vec![(false, false), (false, true), (true, false)]),
        any::<bool>(),
    );
    (
        named,
        chosen,
        vec(name(), 0..4),
        [vec(name(), 0..3), vec(name(), 0..3), vec(name(), 0..3)],
        vec(any::<prop::sample::Index>(), 0..3),
        option::of(any::<prop::sample::Index>()),
    )
        .prop_map(|(named, chosen, files, bounds, after, inside)| {
            let (key, title, prompt, agent, group, base) = named;
            let (priority, isolation, when_parent_ends, (may_spawn, subagents), done) = chosen;
            let [may_change, must_not_change, out_of_scope] = bounds;
            let depends_on = Vec::new();
            let task = TaskText {
                key,
                title,
                prompt,
                agent,
                depends_on,
                priority,
                group,
                files,
                base,
                isolation,
                when_parent_ends,
                parent: None,
                may_spawn,
                subagents,
                bounds: Bounds { may_change, must_not_change, out_of_scope },
                done,
            };
            (task, after, inside)
        })
}

fn plan() -> impl Strategy<Value = PlanText> {
    (name(), option::of(said()), vec(task(), 1..6)).prop_map(|(title, goal, made)| {
        let mut tasks: Vec<TaskText> = Vec::new();
        for (number, (mut task, after, inside)) in made.into_iter().enumerate() {
            if tasks.iter().any(|other| other.key == task.key) {
                task.key = format!("{}{number}", task.key);
            }
            if !tasks.is_empty() {
                task.depends_on = after.iter().map(|index| index.get(&tasks).key.clone()).collect();
                task.parent = inside.map(|index| index.get(&tasks).key.clone());
            }
            tasks.push(task);
        }
        PlanText { title, goal, tasks, steps: None }
    })
}

proptest! {
    #[test]
    fn every_plan_comes_back_as_it_was(plan in plan()) {
        let text = write(&plan);
        prop_assert_eq!(read(&text), Ok(plan), "{}", text);
    }

    #[test]
    fn no_text_breaks_the_reader(text in words(), body in words()) {
        read(&text).ok();
        if let Ok(plan) = read(&format!("# P\n{text}\n{body}")) {
            // What was read once is the same when written and read again.
            prop_assert_eq!(read(&write(&plan)), Ok(plan));
        }
    }
}

/// FND-M4: the agents' steps are written for people; a text with them is read as the same plan.
#[test]
fn fnd_m4_steps_are_written_at_the_end_and_not_read() {
    use crate::paper::steps::Hand;
    use crate::paper::{Handover, NewPlan, NewStep, Plan, StepKind};
    let now = crate::time::Timestamp::from_millis(0);
    let phases = vec!["build".to_owned()];
    let new = NewPlan {
        title: "P".to_owned(),
        phases,
        current_agent: Some("Coordinator".to_owned()),
        ..NewPlan::default()
    };
    let mut plan = Plan::new(crate::PlanId::from_u128(1), new, "hub", now).unwrap();
    assert_eq!(section(&plan), None);
    let notes = Some("two\ncards <!-- /lanyard:steps -->".to_owned());
    plan.add_steps(vec![
        NewStep {
            task: "Write it".to_owned(),
            notes,
            acceptance: vec!["green".to_owned()],
            ..NewStep::default()
        },
        NewStep { task: "Test it".to_owned(), kind: StepKind::Test, ..NewStep::default() },
    ])
    .unwrap();
    let hand = Hand { session: None, name: "ann", now };
    plan.complete_step(1, Some("12 passed".to_owned()), &hand, |_| false).unwrap();
    let (from, to, reason) = ("Coordinator".to_owned(), "Executor".to_owned(), "go".to_owned());
    plan.hand_over(Handover { timestamp: now, from, to, reason, notes: None, session: None }).unwrap();
    let text = format!("# P\n\n## [ ] a: A task\n\nDo it.\n\n{}", section(&plan).unwrap());
    expect_test::expect![[r"
        # P

        ## [ ] a: A task

        Do it.

        <!-- lanyard:steps -->
        Steps: status draft, phase build, agent Executor.

        build:

        - [x] 1. Write it (code)
          Notes: two cards <! -- /lanyard:steps -->
          Acceptance: green
          Evidence: 12 passed
        - [ ] 2. Test it (test)

        Hand-offs:

        - 1970-01-01T00:00:00.000Z: Coordinator to Executor: go
        <!-- /lanyard:steps -->
    "]]
    .assert_eq(&text);
    let found = read(&text).unwrap();
    assert_eq!((found.tasks.len(), found.tasks[0].prompt.as_str(), &found.steps), (1, "Do it.", &None));
    let again = write(&PlanText { steps: section(&plan), ..found });
    assert_eq!(again, text);
    // A prompt that has the mark stays what it is, and a mark without its end is text.
    let odd = PlanText {
        title: "P".to_owned(),
        tasks: vec![TaskText {
            key: "a".to_owned(),
            title: "A".to_owned(),
            prompt: "x\n<!-- lanyard:steps -->\ny\n<!-- /lanyard:steps -->".to_owned(),
            ..TaskText::default()
        }],
        ..PlanText::default()
    };
    assert_eq!(read(&write(&odd)).unwrap(), odd);
    assert_eq!(
        read("# P\n\n## [ ] a: A\n\nx\n<!-- lanyard:steps -->\ny").unwrap().tasks[0].prompt,
        "x\n<!-- lanyard:steps -->\ny"
    );
}
