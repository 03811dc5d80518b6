//! What an agent offers to choose, and what is chosen, as text.

use std::fmt::Write as _;

use lanyard_core::session::{AgentChoice, AgentOffer, ChoiceKind, OfferMenu};

use crate::render::text::one_line;

/// `model opus, mode plan`; nothing for no choice.
pub(crate) fn choice_words(choice: &AgentChoice) -> String {
    let words = ChoiceKind::ALL.into_iter().filter_map(|kind| {
        let value = choice.get(kind)?;
        Some(format!("{} {}", kind.as_str(), one_line(value)))
    });
    words.collect::<Vec<_>>().join(", ")
}

/// `3 models, 2 modes, 60 commands`.
pub(crate) fn offer_words(offer: &AgentOffer) -> String {
    let counted = |count: usize, noun: &str| match count {
        0 => None,
        1 => Some(format!("1 {noun}")),
        count => Some(format!("{count} {noun}s")),
    };
    let menus = ChoiceKind::ALL.map(|kind| counted(offer.menu(kind).items.len(), noun(kind)));
    let words: Vec<String> =
        menus.into_iter().chain([counted(offer.commands.len(), "command")]).flatten().collect();
    if words.is_empty() { "nothing to choose".to_owned() } else { words.join(", ") }
}

const fn noun(kind: ChoiceKind) -> &'static str {
    match kind {
        ChoiceKind::Model => "model",
        ChoiceKind::Mode => "mode",
        ChoiceKind::Effort => "effort level",
    }
}

/// A paragraph for each kind, one line for each entry.
pub(crate) fn offer_lines(offer: &AgentOffer) -> String {
    let mut text = String::new();
    for kind in ChoiceKind::ALL {
        menu_lines(&mut text, noun(kind), offer.menu(kind));
    }
    if !offer.commands.is_empty() {
        text.push_str("\ncommands\n");
        for command in &offer.commands {
            let hint = command.hint.as_deref().map(|hint| format!(" {}", one_line(hint))).unwrap_or_default();
            let about = command.about.as_deref().map(|about| format!("  {}", one_line(about)));
            // Writing to a string cannot fail, here and below.
            let _ = writeln!(text, "  /{}{hint}{}", one_line(&command.name), about.unwrap_or_default());
        }
    }
    text
}

fn menu_lines(text: &mut String, noun: &str, menu: &OfferMenu) {
    if !menu.is_offered() {
        let _ = writeln!(text, "\n{noun}s: no choice is offered");
        return;
    }
    let _ = writeln!(text, "\n{noun}s");
    for item in &menu.items {
        let name =
            item.name.as_deref().filter(|name| *name != item.id).map(|name| format!("  {}", one_line(name)));
        let default = if menu.default.as_deref() == Some(&item.id) { " (default)" } else { "" };
        let unguarded = if item.unguarded { "  asks for no approvals" } else { "" };
        let about =
            item.about.as_deref().filter(|_| !item.unguarded).map(|about| format!("  {}", one_line(about)));
        let _ = writeln!(
            text,
            "  {}{default}{}{}{unguarded}",
            one_line(&item.id),
            name.unwrap_or_default(),
            about.unwrap_or_default()
        );
    }
    if menu.open {
        text.push_str("  any name\n");
    }
}
