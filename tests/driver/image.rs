/// What the driver's image is built by.
const IMAGE: &str = include_str!("../../Dockerfile");

/// The environment that the image gives the driver.
pub(super) fn environment() -> impl Iterator<Item = (&'static str, &'static str)> {
    IMAGE.lines().filter_map(|line| line.strip_prefix("ENV ")?.split_once('='))
}

#[test]
fn the_image_keeps_the_driver_to_one_heap() {
    let found: Vec<_> = environment().collect();
    assert!(found.contains(&("MALLOC_ARENA_MAX", "1")), "{found:?}");
}
