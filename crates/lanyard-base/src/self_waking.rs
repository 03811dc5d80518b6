//! Wakes within one task. A task that wakes itself while it runs is put back into the queue of its runtime, which then wakes
//! another thread to take it from there. Where both ends of a channel live in one task, as in a relayed call, that is
//! several times per call. Here such a wake is noted, and the task goes on at once.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::task::AtomicWaker;

/// How often a task may go on by itself before others have their turn.
const ROUNDS_MAX: usize = 16;

/// Nobody polls: a wake has to reach the runtime.
const WAITING: u8 = 0;
/// It is being polled, and nobody has woken it since.
const POLLED: u8 = 1;
/// Somebody has.
const WOKEN: u8 = 2;

/// Notes the wakes of what is polled under it.
#[derive(Debug)]
pub struct SelfWakes {
    woken: Arc<WakeState>,
    waker: Waker,
}

#[derive(Debug)]
struct WakeState {
    state: AtomicU8,
    outer: AtomicWaker,
}

impl Wake for WakeState {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.state.swap(WOKEN, Ordering::AcqRel) == WAITING {
            self.outer.wake();
        }
    }
}

impl Default for SelfWakes {
    fn default() -> Self {
        let woken = Arc::new(WakeState { state: AtomicU8::new(WAITING), outer: AtomicWaker::new() });
        let waker = Waker::from(woken.clone());
        Self { woken, waker }
    }
}

impl SelfWakes {
    /// Polls for as long as it is woken meanwhile, by itself or by another thread.
    pub fn poll<T>(
        &self,
        context: &mut Context<'_>,
        mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        let Self { woken, waker } = self;
        woken.outer.register(context.waker());
        for _ in 0..ROUNDS_MAX {
            woken.state.swap(POLLED, Ordering::AcqRel);
            if let Poll::Ready(output) = poll(&mut Context::from_waker(waker)) {
                return Poll::Ready(output);
            }
            let quiet = woken.state.compare_exchange(POLLED, WAITING, Ordering::AcqRel, Ordering::Acquire);
            if quiet.is_ok() {
                return Poll::Pending;
            }
        }
        // A wake from now on finds it woken, and this wake on its way.
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

/// A future that goes on at once when it wakes itself.
#[derive(Debug)]
pub struct SelfWaking<F> {
    future: F,
    wakes: SelfWakes,
}

impl<F> SelfWaking<F> {
    #[must_use]
    pub fn new(future: F) -> Self {
        Self { future, wakes: SelfWakes::default() }
    }
}

impl<F: Future + Unpin> Future for SelfWaking<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let Self { future, wakes } = &mut *self;
        wakes.poll(context, |context| Pin::new(&mut *future).poll(context))
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::atomic::AtomicUsize;

    use super::*;

    /// Counts how often the runtime is asked for another turn.
    #[derive(Default)]
    struct Outside(AtomicUsize);

    impl Wake for Outside {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    impl Outside {
        fn poll<F: Future + Unpin>(self: &Arc<Self>, future: &mut F) -> Poll<F::Output> {
            Pin::new(future).poll(&mut Context::from_waker(&Waker::from(self.clone())))
        }

        fn heard(&self) -> usize {
            self.0.load(Ordering::Relaxed)
        }
    }

    /// Wakes itself so many times, and is then done.
    fn restless(mut times: usize) -> impl Future<Output = ()> + Unpin {
        poll_fn(move |context| {
            if times == 0 {
                return Poll::Ready(());
            }
            times -= 1;
            context.waker().wake_by_ref();
            Poll::Pending
        })
    }

    #[test]
    fn what_wakes_itself_goes_on_without_the_runtime() {
        let outside = Arc::new(Outside::default());
        assert_eq!(outside.poll(&mut SelfWaking::new(restless(5))), Poll::Ready(()));
        assert_eq!(outside.heard(), 0);
    }

    #[test]
    fn what_never_rests_leaves_others_their_turn() {
        let outside = Arc::new(Outside::default());
        let mut waking = SelfWaking::new(restless(ROUNDS_MAX * 2 + 1));
        for turn in 1..=2 {
            assert_eq!(outside.poll(&mut waking), Poll::Pending);
            assert_eq!(outside.heard(), turn);
        }
        assert_eq!(outside.poll(&mut waking), Poll::Ready(()));
    }

    #[test]
    fn a_wake_from_elsewhere_reaches_the_runtime_once() {
        let outside = Arc::new(Outside::default());
        let kept = Arc::new(parking_lot::Mutex::new(None));
        let keep = kept.clone();
        let mut waking = SelfWaking::new(poll_fn(move |context| {
            *keep.lock() = Some(context.waker().clone());
            Poll::<()>::Pending
        }));
        for turn in 1..=3 {
            assert_eq!(outside.poll(&mut waking), Poll::Pending);
            let waker = kept.lock().clone().unwrap();
            waker.wake_by_ref();
            waker.wake();
            assert_eq!(outside.heard(), turn, "a task that is on its way need not be called again");
        }
    }

    /// No wake is lost between two threads, however they meet.
    #[test]
    fn nothing_is_lost_between_threads() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
        let (sender, mut receiver) = tokio::sync::mpsc::channel::<u32>(1);
        let heard = runtime.spawn(SelfWaking::new(Box::pin(async move {
            let mut sum = 0_u64;
            while let Some(number) = receiver.recv().await {
                sum += u64::from(number);
            }
            sum
        })));
        let told = runtime.spawn(async move {
            for number in 0..20_000 {
                sender.send(number).await.unwrap();
            }
        });
        runtime.block_on(told).unwrap();
        assert_eq!(runtime.block_on(heard).unwrap(), (0..20_000).sum::<u64>());
    }
}
