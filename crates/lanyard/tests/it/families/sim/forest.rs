//! The families of a simulation: who spawns whom, what each does and how it ends. Grown from a seed, whatever happens to them.

use serde_json::{Value, json};

use super::Sim;

/// Roots that are made at once.
const WAVE: usize = 4;
/// Tasks open below which further roots are made.
const OPEN_MAX: usize = 24;
const OPEN_FEW: usize = 4;
/// Children of one task.
const CHILDREN_MAX: usize = 4;
/// Tasks of one plan.
const PLAN_MAX: usize = 6;

/// A task to be, with those it has made itself.
struct Node {
    name: String,
    script: Vec<String>,
    when_parent_ends: &'static str,
    spawns: bool,
}

enum Root {
    Task(Node),
    Plan { name: String, tasks: Vec<(Node, Value)> },
}

/// Each task has a number of its own, so that its result is like no other.
pub(super) struct Forest {
    random: fastrand::Rng,
    /// Tasks there are to be.
    tasks: usize,
    made: usize,
    /// Grown, and not known to be made.
    next: Option<Root>,
}

impl Forest {
    pub(super) fn new(seed: u64, tasks: usize) -> Self {
        Self { random: fastrand::Rng::with_seed(seed), tasks, made: 0, next: None }
    }

    /// Whether there are as many as there are to be. Who dies early spawns nobody; others are made in their place.
    pub(super) fn is_planted(&self, sim: &Sim) -> bool {
        sim.seen.len() >= self.tasks && self.next.is_none()
    }

    /// Has some more made, unless enough are open. Who is not answered asks whether it was done, and asks again.
    pub(super) fn plant(&mut self, sim: &mut Sim) {
        for _ in 0..WAVE {
            // Once all are grown, it is seen first how many of them live to be made.
            let most = if self.made < self.tasks { OPEN_MAX } else { OPEN_FEW };
            if self.is_planted(sim) || sim.seen.open().count() >= most {
                return;
            }
            let root = match self.next.take() {
                Some(root) => root,
                None if self.random.u8(..4) == 0 => self.plan(),
                None => Root::Task(self.node(0)),
            };
            if !root.is_made(sim) {
                self.next = Some(root);
                return;
            }
        }
    }
}

impl Root {
    /// Whether it was made, now or by a request whose answer was lost.
    fn is_made(&self, sim: &Sim) -> bool {
        let repo = sim.stage.repo();
        let (known, path, body) = match self {
            Self::Task(node) => {
                let mut body = node.body();
                body["workspace"] = json!(repo);
                body["deploy"] = json!(true);
                (format!("/tasks/{}", node.name), "/tasks", body)
            }
            Self::Plan { name, tasks } => {
                let tasks: Vec<Value> = tasks
                    .iter()
                    .map(|(node, more)| {
                        let mut body = node.body();
                        for (field, value) in more.as_object().into_iter().flatten() {
                            body[field] = value.clone();
                        }
                        body
                    })
                    .collect();
                let body =
                    json!({ "title": name, "name": name, "workspace": repo, "start": true, "tasks": tasks });
                (format!("/plans/{name}"), "/plans", body)
            }
        };
        match sim.ask("GET", &known, None) {
            Some(answer) if answer.status == 200 => true,
            Some(answer) => {
                assert_eq!(answer.status, 404, "seed {}: {}", sim.seed, answer.text());
                let Some(made) = sim.post(path, &body) else { return false };
                assert_eq!(made.status, 201, "seed {}: {}", sim.seed, made.text());
                true
            }
            None => false,
        }
    }
}

impl Node {
    fn body(&self) -> Value {
        json!({
            "title": self.name, "prompt": self.script.join("\n"), "aliases": [self.name],
            "may_spawn": self.spawns, "when_parent_ends": self.when_parent_ends,
        })
    }

    /// The step by which its parent makes it.
    fn spawn(&self, wait_ms: Option<u64>) -> String {
        let mut call = json!({
            "action": "spawn", "key": self.name, "title": self.name, "prompt": self.script.join("\n"),
            "may_spawn": self.spawns, "when_parent_ends": self.when_parent_ends,
        });
        if let Some(wait_ms) = wait_ms {
            call["wait_ms"] = json!(wait_ms);
        }
        format!("/mcp lanyard tasks {call}")
    }
}

impl Forest {
    fn name(&mut self) -> String {
        self.made += 1;
        format!("sim-{}", self.made)
    }

    /// A task, with whoever it spawns. Below the second generation nobody spawns.
    fn node(&mut self, depth: usize) -> Node {
        let name = self.name();
        let mut script = vec![format!("/wait {}", self.random.u64(0..400))];
        if self.random.u8(..3) == 0 {
            script.push(format!("/write {name}.txt by {name}"));
        }
        let children = match depth {
            0 => self.random.usize(0..=CHILDREN_MAX),
            1 if self.random.bool() => self.random.usize(0..=CHILDREN_MAX / 2),
            _ => 0,
        };
        for _ in 0..children {
            let child = self.node(depth + 1);
            let waits = (self.random.u8(..4) == 0).then(|| self.random.u64(200..2_000));
            script.push(child.spawn(waits));
        }
        if depth > 0 && self.random.u8(..3) == 0 {
            script.push(report(["progress", "question"][self.random.usize(..2)], &name));
        }
        if self.random.u8(..12) == 0 {
            script.push(format!("/ask May {name} go on?"));
        }
        script.push(format!("/wait {}", self.random.u64(0..600)));
        script.extend(self.end(&name));
        let when_parent_ends = ["wait", "adopt", "cancel"][self.random.usize(..3)];
        Node { name, script, when_parent_ends, spawns: children > 0 }
    }

    /// How it is going to end, if it is let.
    fn end(&mut self, name: &str) -> Vec<String> {
        match self.random.u8(..16) {
            0 | 1 => vec!["/stop refusal".to_owned()],
            2 | 3 => vec!["/die".to_owned()],
            4 => vec![report("failed", name)],
            5 | 6 => vec![report("completed", name), format!("/say told of {name}")],
            7 => vec!["/exit 3".to_owned()],
            8 => vec![format!("/write {name}.txt half of {name}"), "/stop max_tokens".to_owned()],
            _ => vec![format!("/say result of {name}")],
        }
    }

    /// Tasks that wait for each other, in groups, with files that only one may write.
    fn plan(&mut self) -> Root {
        let mut tasks: Vec<(Node, Value)> = Vec::new();
        let grouped = self.random.bool();
        for at in 0..self.random.usize(2..=PLAN_MAX) {
            let depth = usize::from(self.random.bool());
            let node = self.node(depth);
            let mut more = json!({ "key": node.name });
            if at > 0 && self.random.bool() {
                let on = self.random.usize(..at);
                more["depends_on"] = json!([tasks[on].0.name]);
            }
            if grouped && self.random.bool() {
                more["group"] = json!(["left", "right"][self.random.usize(..2)]);
            }
            if self.random.u8(..3) == 0 {
                more["files"] = json!(["shared.txt"]);
            }
            tasks.push((node, more));
        }
        Root::Plan { name: format!("plan-{}", self.made), tasks }
    }
}

fn report(kind: &str, name: &str) -> String {
    let call = json!({ "action": "report", "kind": kind, "text": format!("{kind} of {name}") });
    format!("/mcp lanyard tasks {call}")
}
