//! A program whose linker keeps the door's functions to itself (`../build.rs`): it must not say
//! that it sees every call.

fn main() {
    match gpumem_test::__private::door::check() {
        Ok(()) => println!("the door is open"),
        Err(error) => println!("{error:?}"),
    }
}
