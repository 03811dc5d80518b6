//! Playing a conversation back: everything the editor would have seen, in order, before the answer.

use agent_client_protocol_schema::v1::{LoadSessionResponse, RequestId};
use lanyard_api::types::{EventsPage, SessionDetail};
use lanyard_client::Route;
use lanyard_core::session::Envelope;

use super::super::tell::{Teller, Telling};
use super::super::words::error_of;
use super::EditorSession;
use crate::failure::Failure;

/// Events read at once.
const PAGE_EVENTS: usize = 500;
/// Forks of forks that are gone back through.
const FORKS_MAX: usize = 32;

/// A stretch of a log: all of it up to a position.
struct Stretch {
    session: String,
    to: u64,
}

impl EditorSession {
    pub(super) async fn load(&mut self, id: RequestId) {
        match self.play().await {
            Ok(()) => {
                self.host.wire.answer(id, self.choosing.beside(&LoadSessionResponse::new())).await;
                self.tell_commands().await;
                self.mark(self.follow.last());
            }
            Err(failure) => self.host.wire.refuse(id, error_of(&failure)).await,
        }
    }

    async fn play(&mut self) -> Result<(), Failure> {
        // What comes after this position is told live.
        let own = Stretch { session: self.id.clone(), to: self.follow.last() };
        let mut teller = Teller::new(&self.host.mine);
        for stretch in self.stretches(own).await? {
            // Positions are those of its own log.
            teller = Teller::new(&self.host.mine);
            self.play_stretch(&mut teller, &stretch).await?;
        }
        self.teller.go_on_from(&teller);
        Ok(())
    }

    /// A fork goes on from another log, up to where it was forked, and that one may be a fork too. The oldest is first.
    async fn stretches(&self, own: Stretch) -> Result<Vec<Stretch>, Failure> {
        let mut stretches = vec![own];
        while let Some(last) = stretches.last()
            && stretches.len() <= FORKS_MAX
        {
            let route = Route::to(&["sessions", &last.session]);
            let detail: SessionDetail = match self.host.get(&route).await {
                Ok(detail) => detail,
                // What was forked from may be deleted; the rest is still there.
                Err(Failure::Told { problem, .. })
                    if stretches.len() > 1 && matches!(problem.status, 404 | 410) =>
                {
                    stretches.pop();
                    break;
                }
                Err(failure) => return Err(failure),
            };
            match detail.view.forked_from {
                Some(fork) => stretches.push(Stretch { session: fork.session.to_string(), to: fork.seq }),
                None => break,
            }
        }
        stretches.reverse();
        Ok(stretches)
    }

    async fn play_stretch(&self, teller: &mut Teller, stretch: &Stretch) -> Result<(), Failure> {
        let mut after = 0;
        while after < stretch.to {
            let route = Route::to(&["sessions", &stretch.session, "events"])
                .with("after", Some(after))
                .with("limit", Some(PAGE_EVENTS));
            let page: EventsPage = self.host.get(&route).await?;
            let Some(last) = page.events.last().and_then(|event| event["seq"].as_u64()) else { break };
            for event in page.events {
                // An event this version does not know is nothing it could show.
                let Ok(envelope) = serde_json::from_value::<Envelope>(event) else { continue };
                if envelope.seq <= stretch.to
                    && let Some(update) = teller.tell(&envelope, Telling::PlayedBack)
                {
                    self.host.wire.update(&self.name, update).await;
                }
            }
            after = last;
        }
        Ok(())
    }
}
