<?php
// Must-use plugin of the test site: posts whose slug stands in slow.txt are inserted twenty seconds late.

add_filter(
	'rest_pre_insert_post',
	function ( $prepared, $request ) {
		$slow = @file( WP_CONTENT_DIR . '/slow.txt', FILE_IGNORE_NEW_LINES | FILE_SKIP_EMPTY_LINES );
		if ( $slow && empty( $request['id'] ) && in_array( $request['slug'], $slow, true ) ) {
			sleep( 20 );
		}
		return $prepared;
	},
	10,
	2
);
