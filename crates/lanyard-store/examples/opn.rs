use lanyard_store::*;
use std::time::Instant;
fn main() {
    let path = std::env::args().nth(1).unwrap();
    for _ in 0..3 {
        let t = Instant::now();
        let j = SqliteJournal::open(SqliteOptions::at(path.clone().into())).unwrap();
        let a = t.elapsed();
        let t = Instant::now();
        drop(j);
        println!("open {a:?} close {:?}", t.elapsed());
    }
}
