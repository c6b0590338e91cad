<?php
// Installs the site at CITELOOP_SITE and prints one application password per role as JSON.

define( 'WP_INSTALLING', true );
$_SERVER['HTTP_HOST']       = getenv( 'CITELOOP_HOST' );
$_SERVER['SERVER_PROTOCOL'] = 'HTTP/1.1';
$_SERVER['REQUEST_URI']     = '/';

function wp_mail() { // pluggable: nothing leaves this machine
	return true;
}

require getenv( 'CITELOOP_SITE' ) . '/wp-load.php';
require ABSPATH . 'wp-admin/includes/upgrade.php';

wp_install( 'Real WordPress', 'admin', 'admin@example.org', true, '', wp_generate_password() );
update_option( 'permalink_structure', '/%postname%/' );

foreach ( get_posts( array( 'post_type' => 'any', 'post_status' => 'any', 'numberposts' => -1 ) ) as $sample ) {
	wp_delete_post( $sample->ID, true );
}

$passwords = array();
foreach ( array( 'administrator' => 'admin', 'editor' => 'citeloop', 'author' => 'writer' ) as $role => $login ) {
	$user = get_user_by( 'login', $login );
	$id   = $user ? $user->ID : wp_insert_user(
		array(
			'user_login' => $login,
			'user_pass'  => wp_generate_password(),
			'user_email' => "$login@example.org",
			'role'       => $role,
		)
	);
	list( $password ) = WP_Application_Passwords::create_new_application_password( $id, array( 'name' => 'CiteLoop' ) );
	$passwords[ $role ] = array( 'user' => $login, 'password' => $password );
}
flush_rewrite_rules();
echo "\n", wp_json_encode( $passwords ), "\n";
