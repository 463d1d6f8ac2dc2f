#if STANDARDISES
/* The mean has two parts where float cannot hold it. */
static model_real scaled(model_real x, int i) {
#if MEAN_REST
    return (x - mean[i] - mean_rest[i]) * scale[i];
#else
    return (x - mean[i]) * scale[i];
#endif
}

#endif
