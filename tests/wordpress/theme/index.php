<!DOCTYPE html>
<html <?php language_attributes(); ?>>
<head>
<meta charset="<?php bloginfo( 'charset' ); ?>">
<?php wp_head(); ?>
</head>
<body>
<?php while ( have_posts() ) : the_post(); ?>
<article>
<h1><?php the_title(); ?></h1>
<?php if ( has_post_thumbnail() ) : ?>
<figure><?php the_post_thumbnail(); ?><figcaption><?php the_post_thumbnail_caption(); ?></figcaption></figure>
<?php endif; ?>
<?php the_content(); ?>
</article>
<?php endwhile; ?>
<?php wp_footer(); ?>
</body>
</html>
