#include "engine.h"

static int forward(const an_call *call) {
    (void)call;
    return 0;
}

static int backward(const an_call *call) {
    (void)call;
    return 0;
}

const an_engine AN_ENGINE = {AN_ENGINE_NAME, forward, backward};
